package consequence_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"croft.dev/croft/internal/adoption/consequence"
	"croft.dev/croft/internal/operate/drift"
)

// changesRow is a row of a table of docs/reference/changes.md. hack/fields writes a row for each
// field.
type changesRow struct {
	fields []string
	effect string
}

// readChangesTable reads the table of one kind.
func readChangesTable(t *testing.T, kind string) []changesRow {
	t.Helper()
	content, err := os.ReadFile("../../../docs/reference/changes.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(content), "\n## "+kind+"\n")
	if !found {
		t.Fatalf("docs/reference/changes.md has no section %s", kind)
	}
	section, _, _ = strings.Cut(section, "\n## ")
	quoted := regexp.MustCompile("`([^`]+)`")
	var rows []changesRow
	for line := range strings.Lines(section) {
		cells := strings.Split(line, "|")
		if len(cells) < 4 || !strings.Contains(cells[1], "`") {
			continue
		}
		row := changesRow{effect: strings.TrimSpace(cells[2])}
		for _, match := range quoted.FindAllStringSubmatch(cells[1], -1) {
			row.fields = append(row.fields, match[1])
		}
		rows = append(rows, row)
	}
	return rows
}

// poolChanges has a change for each field of a Pool: of the pool in changesFile, or of its
// nodeClass.aws.
var poolChanges = map[string]string{
	"instances.capacityTypes": "instances: {capacityTypes: [spot]}", "instances.instanceTypes": "instances: {instanceTypes: [t3a.small]}",
	"instances.architectures": "instances: {architectures: [arm64]}", "instances.requirements": "instances: {requirements: [{key: karpenter.k8s.aws/instance-family, operator: In, values: [m5]}]}",
	"costCode": "costCode: org1", "tags": "tags: {a: b}", "ttl": "ttl: 24h", "terminationGracePeriod": "terminationGracePeriod: 1h",
	"startupTaints":   "startupTaints: [{key: a, effect: NoSchedule}]",
	"waitForNetworks": "waitForNetworks: true, secondaryNetworks: [n]", "secondaryNetworks": "secondaryNetworks: [n]", "limits": `limits: {cpu: "1"}`, "weight": "weight: 10", "budgets": `budgets: [{nodes: "1"}]`,
	"consolidation": "consolidation: WhenEmptyOrUnderutilized", "emptyTTL": "emptyTTL: 1h",
	"nodeClass.aws.role": "role: other", "nodeClass.aws.instanceProfile": "instanceProfile: other", "nodeClass.aws.associatePublicIPAddress": "associatePublicIPAddress: true",
	"nodeClass.aws.kubelet": "kubelet: {maxPods: 20}", "nodeClass.aws.userData": "userData: echo", "nodeClass.aws.blockDeviceMappings": "blockDeviceMappings: [{deviceName: /dev/xvda, ebs: {volumeSize: 50Gi}}]",
	"nodeClass.aws.instanceStorePolicy": "instanceStorePolicy: RAID0", "nodeClass.aws.metadataOptions": "metadataOptions: {httpPutResponseHopLimit: 2}", "nodeClass.aws.detailedMonitoring": "detailedMonitoring: true",
	"nodeClass.aws.tags": "tags: {a: b}", "nodeClass.aws.tagKeys": "tagKeys: {project: team}", "nodeClass.aws.amiFamily": "amiFamily: AL2", "nodeClass.aws.amiAlias": "amiAlias: al2023@v20250101",
	"nodeClass.aws.amiSelectorTerms": "amiSelectorTerms: [{alias: al2023@v20250101}]", "nodeClass.aws.discovery": "discovery: {a: b}", "nodeClass.aws.subnetSelectorTerms": "subnetSelectorTerms: [{id: subnet-1}]",
	"nodeClass.aws.securityGroupSelectorTerms": "securityGroupSelectorTerms: [{id: sg-1}]", "nodeClass.aws.capacityReservationSelectorTerms": "capacityReservationSelectorTerms: [{id: cr-1}]",
}

const changesFile = `
platform: {clusterName: demo, nodeClass: {aws: {role: nodes}}}
pools: {apps: {SPEC}}
secondaryNetworks: {n: {zones: [{zone: us-west-2a, subnet: subnet-0a4, securityGroups: [sg-0n4], cidr: 10.0.4.0/24, podCIDR: 10.0.4.32/27, gateway: 10.0.4.1}]}}
`

// TestChangesDocAgreesWithKarpenter changes each field of a Pool, and compares the effect in
// docs/reference/changes.md with Karpenter's own hash and comparison.
func TestChangesDocAgreesWithKarpenter(t *testing.T) {
	pool := func(spec string) (drift.Pool, consequence.PoolFacts) {
		e := buildEstate(t, strings.Replace(changesFile, "SPEC", spec, 1))
		return findPoolObjects(e)(e.FindPool("apps")), makeFacts(buildEstate(t, before)).Pools["apps"]
	}
	live, made := pool("consolidation: WhenEmpty")
	for _, row := range readChangesTable(t, "Pool") {
		for _, field := range row.fields {
			change, ok := poolChanges[field]
			if strings.HasPrefix(row.effect, "refused") {
				continue
			}
			if !ok {
				t.Errorf("poolChanges has no change of %s", field)
				continue
			}
			if strings.HasPrefix(field, "nodeClass.aws.") {
				change = "nodeClass: {aws: {" + change + "}}"
			}
			if field != "consolidation" {
				change += ", consolidation: WhenEmpty"
			}
			desired, _ := pool(change)
			effect := drift.Compare(live, desired, made.Claims)
			want := "kept"
			switch {
			case len(effect.Fields) > 0:
				want = "replaced"
			case len(effect.Dynamic) > 0 || effect.Replaced > 0:
				want = "replaced if"
			}
			if got := strings.HasPrefix(row.effect, "replaced if"); !strings.HasPrefix(row.effect, want) || want == "replaced" && got {
				t.Errorf("%s: %+v, but docs/reference/changes.md has %q", field, effect, row.effect)
			}
		}
	}
}
