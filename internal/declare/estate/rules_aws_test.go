package estate

import (
	"fmt"
	"strings"
	"testing"
)

// isOnAWS is a platform on AWS; a test's own lines begin on line 3.
const onAWS = "platform: {clusterName: demo, nodeClass: {aws: {%s}}}\npools:\n  jobs: {costCode: org1, nodeClass: {aws: {%s}}}\n"

// TestAWSRefuses tests classes from which no EC2NodeClass can be created, alone or after the
// merge.
func TestAWSRefuses(t *testing.T) {
	const pool = "croft.yaml:3: pools.jobs.nodeClass.aws"
	var many strings.Builder
	for i := range 40 {
		fmt.Fprintf(&many, "t%d: v, ", i)
	}
	for _, test := range []struct {
		name, platform, pool string
		want                 []string
	}{
		{"no role anywhere", ``, `kubelet: {maxPods: 5}`, []string{pool + ": neither this pool nor the platform sets role or instanceProfile; set one of them, such as role: KarpenterNodeRole-demo"}},
		{"a role and a profile", `role: a`, `role: a, instanceProfile: b`, []string{pool + ": set role or instanceProfile, not both"}},
		{"an alias and terms", `role: a`, `amiAlias: al2023@latest, amiSelectorTerms: [{id: ami-1}]`, []string{pool + ": set amiAlias or amiSelectorTerms, not both"}},
		{"discovery of nothing", `role: a`, `discovery: {a: b}, subnetSelectorTerms: [{id: subnet-1}], securityGroupSelectorTerms: [{id: sg-1}]`,
			[]string{pool + ": discovery replaces missing selector terms: leave it out, or leave out subnetSelectorTerms or securityGroupSelectorTerms"}},
		{"an unknown alias", `role: a`, `amiAlias: windows2022@latest`, []string{pool + `.amiAlias: "windows2022@latest" must be family@version, such as al2023@latest or bottlerocket@v1.20.0, of the families al2, al2023 and bottlerocket`}},
		{"another family than the alias", `role: a, amiAlias: al2023@v1`, `amiFamily: Bottlerocket`,
			[]string{pool + ".amiFamily: the images of al2023@v1 are not of the family Bottlerocket; leave amiFamily out, or write amiAlias: bottlerocket@latest"}},
		{"images without a family", `role: a`, `amiSelectorTerms: [{id: ami-1}]`, []string{pool + ".amiFamily: images without an alias need the family to which they belong; set one, such as AL2023"}},
		{"a family without images", `role: a`, `amiFamily: Custom`, []string{pool + ".amiFamily: Custom has no images of its own; set amiSelectorTerms"}},
		{"an alias among others", `role: a`, `amiSelectorTerms: [{alias: al2023@latest}, {id: ami-1}]`, []string{pool + ".amiSelectorTerms: an alias excludes other terms: leave them out"}},
		{"terms of two kinds", `role: a`, `amiFamily: AL2023, amiSelectorTerms: [{id: ami-1, name: x}, {owner: self}, {id: x}], subnetSelectorTerms: [{id: subnet-1, tags: {a: b}}], securityGroupSelectorTerms: [{}], capacityReservationSelectorTerms: [{ownerID: "1"}, {id: cr-1, ownerID: "123456789012"}]`, []string{
			pool + ".amiSelectorTerms[0]: set one of alias, id and ssmParameter, or tags and name, with the owner",
			pool + ".amiSelectorTerms[1]: an owner has many images: set tags or name, too",
			pool + `.amiSelectorTerms[2].id: "x" must be the id of an image, such as ami-0123456789abcdef0`,
			pool + ".capacityReservationSelectorTerms[0]: set id, or tags and instanceMatchCriteria",
			pool + `.capacityReservationSelectorTerms[0].ownerID: "1" must be the number of an account, of twelve digits in quotes`,
			pool + ".capacityReservationSelectorTerms[1]: an id needs no ownerID: leave it out",
			pool + ".securityGroupSelectorTerms[0]: set exactly one of tags, id and name",
			pool + ".subnetSelectorTerms[0]: set one of tags and id"}},
		{"tags without values", `role: a`, `discovery: {a: ""}`, []string{pool + `.discovery: tags have keys and values; for any value write "*"`}},
		{"thresholds across", `role: a, kubelet: {imageGCHighThresholdPercent: 80, evictionSoft: {memory.available: 5%}, evictionSoftGracePeriod: {memory.available: 60s}}`,
			`kubelet: {imageGCLowThresholdPercent: 90, evictionSoft: {pid.available: 5%}}`, []string{
				pool + ".kubelet.evictionSoftGracePeriod.memory.available: there is no memory.available in evictionSoft; leave it out, or add it there",
				pool + `.kubelet.evictionSoft["pid.available"]: needs a grace period; write evictionSoftGracePeriod: {pid.available: 90s}`,
				pool + ".kubelet.imageGCHighThresholdPercent: must be more than imageGCLowThresholdPercent, and 80 is not more than 90"}},
		{"a kubelet that reserves the impossible", `role: a`, `kubelet: {systemReserved: {cpu: -1}, kubeReserved: {gpu: 1}, evictionHard: {memory.available: lots}, evictionSoftGracePeriod: {}, evictionMaxPodGracePeriod: 1.5}`, []string{
			pool + `.kubelet.evictionHard["memory.available"]: "lots" must be an amount or a percentage, such as 200Mi or 5%`,
			pool + ".kubelet.evictionMaxPodGracePeriod: must be a whole number, not the number 1.5",
			pool + ".kubelet.kubeReserved: only cpu, memory, ephemeral-storage and pid can be reserved"}},
		{"less than nothing reserved", `role: a`, `kubelet: {systemReserved: {cpu: -1}}`, []string{pool + ".kubelet.systemReserved.cpu: must not be below zero, as -1 is"}},
		{"disks", `role: a`, `blockDeviceMappings: [{deviceName: a, rootVolume: true, ebs: {volumeSize: 19Ti}}, {deviceName: b, rootVolume: true, ebs: {}}, {deviceName: c, ebs: {volumeSize: 1Gi, volumeInitializationRate: 100}}, {ebs: {volumeSize: 1Gi, volumeType: gp4}}]`, []string{
			pool + ".blockDeviceMappings[0].ebs.volumeSize: \"19Ti\" must be a size that EBS supports, such as 50Gi or 1Ti",
			pool + ".blockDeviceMappings[1].ebs: set volumeSize, or snapshotID for the size of the snapshot",
			pool + ".blockDeviceMappings[2].ebs: volumeInitializationRate is for volumes from a snapshot: leave it out, or set snapshotID",
			pool + ".blockDeviceMappings[3].deviceName: is required, but missing",
			pool + `.blockDeviceMappings[3].ebs.volumeType: "gp4" is not one of standard, io1, io2, gp2, sc1, st1 and gp3; did you mean gp2?`}},
		{"two root volumes", `role: a`, `blockDeviceMappings: [{deviceName: a, rootVolume: true, ebs: {volumeSize: 1Ti}}, {deviceName: b, rootVolume: true, ebs: {volumeSize: 1Ti}}]`, []string{pool + ".blockDeviceMappings: only one of the disks can be the rootVolume"}},
		{"metadata", `role: a`, `metadataOptions: {httpPutResponseHopLimit: 65, httpTokens: none}, instanceStorePolicy: RAID5`, []string{
			pool + `.instanceStorePolicy: "RAID5" is not one of RAID0; did you mean RAID0?`,
			pool + ".metadataOptions.httpPutResponseHopLimit: must be from 1 to 64, not 65",
			pool + `.metadataOptions.httpTokens: "none" is not allowed; write required or optional`}},
		{"tags that are not free", `role: a`, `tags: {"aws:cloud": a, "eks:x": b, karpenter.sh/nodepool: c, ok: "` + strings.Repeat("x", 257) + `"}, tagKeys: {project: "kubernetes.io/cluster/demo"}`, []string{
			pool + `.tagKeys.project: the tag kubernetes.io/cluster/demo is reserved for the cluster; choose another`,
			pool + `.tags.aws:cloud: the tag aws:cloud is reserved for AWS; choose another`,
			pool + `.tags.eks:x: the tag eks:x is reserved for the cluster; choose another`,
			pool + `.tags["karpenter.sh/nodepool"]: the tag karpenter.sh/nodepool is reserved for Karpenter; choose another`,
			pool + `.tags.ok: the value of a tag has at most 256 characters, and this one has 257`}},
		{"too many tags", `role: a, tags: {` + many.String() + `}`, `tags: {a: a, b: b}`, []string{"croft.yaml:3: pools.jobs.tags: together with the platform's and croft's own there are 45 tags, and EC2 allows 44; leave some out"}},
		{"the platform's tags", `role: a, tags: {"aws:cloud": a}`, ``, []string{`croft.yaml:1: platform.nodeClass.aws.tags.aws:cloud: the tag aws:cloud is reserved for AWS; choose another`}},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, _, problems := parseAndBuild(fmt.Sprintf(onAWS, test.platform, test.pool))
			expectProblems(t, problems, test.want...)
		})
	}
}
