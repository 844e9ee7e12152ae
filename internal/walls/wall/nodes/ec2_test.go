package nodes_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/declare/manifest"
	"croft.dev/croft/internal/test/sandbox"
	"croft.dev/croft/internal/walls/wall/nodes"
)

// defaults is the EC2NodeClass for a croft.yaml that sets only the role.
const defaults = `{
amiFamily: AL2023, amiSelectorTerms: [{alias: al2023@latest}], associatePublicIPAddress: false, detailedMonitoring: false,
blockDeviceMappings: [{deviceName: /dev/xvda, ebs: {deleteOnTermination: true, encrypted: true, volumeSize: 20Gi, volumeType: gp3}}],
kubelet: {clusterDNS: [10.100.0.10]},
metadataOptions: {httpEndpoint: enabled, httpProtocolIPv6: disabled, httpPutResponseHopLimit: 1, httpTokens: required},
role: nodes, securityGroupSelectorTerms: [{tags: {karpenter.sh/discovery: demo}}], subnetSelectorTerms: [{tags: {karpenter.sh/discovery: demo}}],
tags: {CostCode: org1, NodePool: jobs, Project: jobs}}`

// classes has settings of a pool's nodes, and the resulting differences of the EC2NodeClass
// from the defaults. null means an absent field. Every field of AWSNodeClass is in at least
// one of them.
var classes = []struct{ name, wantText, gives string }{
	{"nothing", `{}`, `{}`},
	{"a role", `{role: other}`, `{role: other}`},
	{"an instance profile", `{instanceProfile: profile}`, `{instanceProfile: profile, role: null}`},
	{"an alias", `{amiAlias: al2023@v20250101}`, `{amiSelectorTerms: [{alias: al2023@v20250101}]}`},
	{"Bottlerocket", `{amiAlias: bottlerocket@v1.20.0}`, `{amiFamily: Bottlerocket, amiSelectorTerms: [{alias: bottlerocket@v1.20.0}], blockDeviceMappings: [
		{deviceName: /dev/xvda, ebs: {deleteOnTermination: true, encrypted: true, volumeSize: 4Gi, volumeType: gp3}},
		{deviceName: /dev/xvdb, ebs: {deleteOnTermination: true, encrypted: true, volumeSize: 20Gi, volumeType: gp3}}]}`},
	{"a family", `{amiFamily: AL2}`, `{amiFamily: AL2, amiSelectorTerms: [{alias: al2@latest}]}`},
	{"images of one's own", `{amiFamily: Custom, userData: join, amiSelectorTerms: [{id: ami-1}, {tags: {Name: "*"}, owner: self}, {name: "nodes-*", owner: "123456789012"}, {ssmParameter: /nodes/image}]}`,
		`{amiFamily: Custom, userData: join, blockDeviceMappings: null, amiSelectorTerms: [{id: ami-1}, {tags: {Name: "*"}, owner: self}, {name: "nodes-*", owner: "123456789012"}, {ssmParameter: /nodes/image}]}`},
	{"an alias among terms", `{amiSelectorTerms: [{alias: al2023@v20250101}]}`, `{amiSelectorTerms: [{alias: al2023@v20250101}]}`},
	{"discovery", `{discovery: {Name: "*private*"}}`, `{subnetSelectorTerms: [{tags: {Name: "*private*"}}], securityGroupSelectorTerms: [{tags: {Name: "*private*"}}]}`},
	{"subnets", `{subnetSelectorTerms: [{id: subnet-1}, {tags: {Name: private}}]}`, `{subnetSelectorTerms: [{id: subnet-1}, {tags: {Name: private}}]}`},
	{"security groups", `{discovery: {a: b}, securityGroupSelectorTerms: [{id: sg-1}, {name: nodes}, {tags: {Name: "*"}}]}`,
		`{subnetSelectorTerms: [{tags: {a: b}}], securityGroupSelectorTerms: [{id: sg-1}, {name: nodes}, {tags: {Name: "*"}}]}`},
	{"public addresses", `{associatePublicIPAddress: true}`, `{associatePublicIPAddress: true}`},
	{"capacity reservations", `{capacityReservationSelectorTerms: [{id: cr-1}, {tags: {Team: shop}, ownerID: "123456789012", instanceMatchCriteria: targeted}]}`,
		`{capacityReservationSelectorTerms: [{id: cr-1}, {tags: {Team: shop}, ownerID: "123456789012", instanceMatchCriteria: targeted}]}`},
	{"tags", `{tags: {Stage: test, Project: all}}`, `{tags: {CostCode: org1, NodePool: jobs, Project: all, Stage: test}}`},
	{"other keys of tags", `{tagKeys: {costCode: "billing:code", project: team, nodePool: pool}}`, `{tags: {"billing:code": org1, team: jobs, pool: jobs}}`},
	{"all of the kubelet", `{kubelet: {clusterDNS: [10.0.0.2, "fd00::a"], maxPods: 20, podsPerCore: 5, systemReserved: {cpu: 100m, memory: 1Gi}, kubeReserved: {ephemeral-storage: 1Gi, pid: 100},
		evictionHard: {memory.available: 5%, nodefs.inodesFree: "1000"}, evictionSoft: {imagefs.available: 2Gi}, evictionSoftGracePeriod: {imagefs.available: 1m30s}, evictionMaxPodGracePeriod: 60,
		imageGCHighThresholdPercent: 80, imageGCLowThresholdPercent: 70, cpuCFSQuota: false}}`,
		`{kubelet: {clusterDNS: [10.0.0.2, "fd00::a"], maxPods: 20, podsPerCore: 5, systemReserved: {cpu: 100m, memory: 1Gi}, kubeReserved: {ephemeral-storage: 1Gi, pid: "100"},
		evictionHard: {memory.available: 5%, nodefs.inodesFree: "1000"}, evictionSoft: {imagefs.available: 2Gi}, evictionSoftGracePeriod: {imagefs.available: 1m30s}, evictionMaxPodGracePeriod: 60,
		imageGCHighThresholdPercent: 80, imageGCLowThresholdPercent: 70, cpuCFSQuota: false}}`},
	{"user data", `{userData: "echo\n"}`, `{userData: "echo\n"}`},
	{"disks", `{blockDeviceMappings: [
		{deviceName: /dev/xvda, rootVolume: true, ebs: {volumeSize: 1Ti, volumeType: io2, iops: 4000, encrypted: true, kmsKeyID: alias/nodes}},
		{deviceName: /dev/xvdb, ebs: {volumeSize: 100G, throughput: 250, deleteOnTermination: false, encrypted: false}},
		{deviceName: /dev/xvdc, ebs: {snapshotID: snap-1, volumeInitializationRate: 100}}]}`,
		`{blockDeviceMappings: [
		{deviceName: /dev/xvda, rootVolume: true, ebs: {volumeSize: 1Ti, volumeType: io2, iops: 4000, encrypted: true, kmsKeyID: alias/nodes, deleteOnTermination: true}},
		{deviceName: /dev/xvdb, ebs: {volumeSize: 100G, throughput: 250, deleteOnTermination: false, encrypted: false, volumeType: gp3}},
		{deviceName: /dev/xvdc, ebs: {snapshotID: snap-1, volumeInitializationRate: 100, deleteOnTermination: true, volumeType: gp3}}]}`},
	{"the largest disks", `{blockDeviceMappings: [{deviceName: a, ebs: {volumeSize: 59000Gi}}, {deviceName: b, ebs: {volumeSize: 64000G}}, {deviceName: c, ebs: {volumeSize: 58Ti}}, {deviceName: d, ebs: {volumeSize: 64T}}]}`,
		`{blockDeviceMappings: [{deviceName: a, ebs: {volumeSize: 59000Gi, deleteOnTermination: true, encrypted: true, volumeType: gp3}}, {deviceName: b, ebs: {volumeSize: 64000G, deleteOnTermination: true, encrypted: true, volumeType: gp3}},
		{deviceName: c, ebs: {volumeSize: 58Ti, deleteOnTermination: true, encrypted: true, volumeType: gp3}}, {deviceName: d, ebs: {volumeSize: 64T, deleteOnTermination: true, encrypted: true, volumeType: gp3}}]}`},
	{"disks of the instance", `{instanceStorePolicy: RAID0}`, `{instanceStorePolicy: RAID0}`},
	{"a hop more", `{metadataOptions: {httpPutResponseHopLimit: 2}}`, `{metadataOptions: {httpEndpoint: enabled, httpProtocolIPv6: disabled, httpPutResponseHopLimit: 2, httpTokens: required}}`},
	{"all of the metadata", `{metadataOptions: {httpEndpoint: disabled, httpProtocolIPv6: enabled, httpPutResponseHopLimit: 64, httpTokens: optional}}`,
		`{metadataOptions: {httpEndpoint: disabled, httpProtocolIPv6: enabled, httpPutResponseHopLimit: 64, httpTokens: optional}}`},
	{"detailed monitoring", `{detailedMonitoring: true}`, `{detailedMonitoring: true}`},
}

// TestEC2NodeClass expects the table's result for each class, and the defaults for all other
// fields.
func TestEC2NodeClass(t *testing.T) {
	for _, c := range classes {
		t.Run(c.name, func(t *testing.T) {
			want := parseMapping(t, defaults)
			for key, value := range parseMapping(t, c.gives) {
				if want[key] = value; value == nil {
					delete(want, key)
				}
			}
			if diff := cmp.Diff(want, convertToMap(t, buildClass(t, c.wantText).Object["spec"])); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestEveryFieldIsInTheTable fails if a field of the type is missing in the table.
func TestEveryFieldIsInTheTable(t *testing.T) {
	covered := map[string]bool{}
	for _, c := range classes {
		markPaths(parseMapping(t, c.wantText), "", covered)
	}
	for _, field := range listFields(reflect.TypeFor[v1alpha1.AWSNodeClass](), "") {
		if !covered[field] {
			t.Errorf("no class sets %s", field)
		}
	}
}

// TestEC2NodeClassOnAServer creates each class on an API server with Karpenter's own CRD.
// Strict validation refuses unknown fields. The stored object must equal the sent one, so no
// default of the CRD applies. The pools pass the validation of croft's own CRD.
func TestEC2NodeClassOnAServer(t *testing.T) {
	sandbox.EndToEnd(t)
	if testing.Short() {
		t.Skip("starts a control plane")
	}
	cluster := sandbox.Start(t, sandbox.Options{Components: sandbox.APIOnly})
	if err := cluster.InstallCRDs(t.Context(), sandbox.KarpenterAWS); err != nil {
		t.Fatal(err)
	}
	all, err := dynamic.NewForConfig(cluster.Config)
	if err != nil {
		t.Fatal(err)
	}
	strictly := metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict}
	for i, c := range classes {
		t.Run(c.name, func(t *testing.T) {
			o := buildClass(t, c.wantText)
			o.SetName(fmt.Sprintf("class-%d", i))
			made, err := all.Resource(schema.GroupVersionResource{Group: "karpenter.k8s.aws", Version: "v1", Resource: "ec2nodeclasses"}).Create(t.Context(), o, strictly)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(convertToMap(t, o.Object["spec"]), convertToMap(t, made.Object["spec"])); diff != "" {
				t.Errorf("the stored one differs (-sent +stored):\n%s", diff)
			}
			spec := map[string]any{"nodeClass": map[string]any{"aws": parseMapping(t, c.wantText)}}
			pool := &unstructured.Unstructured{Object: map[string]any{"apiVersion": v1alpha1.GroupVersion.String(), "kind": "Pool", "metadata": map[string]any{"name": o.GetName()}, "spec": spec}}
			if _, err := all.Resource(v1alpha1.GroupVersion.WithResource("pools")).Create(t.Context(), pool, strictly); err != nil {
				t.Error(err)
			}
		})
	}
}

// buildClass returns the EC2NodeClass of a pool with the given class, on a platform with the
// role nodes.
func buildClass(t *testing.T, aws string) *unstructured.Unstructured {
	t.Helper()
	file := "platform: {clusterName: demo, clusterDNS: [10.100.0.10], nodeClass: {aws: {role: nodes}}}\npools: {jobs: {costCode: org1, nodeClass: {aws: " + strings.ReplaceAll(aws, "\t", " ") + "}}}\n"
	d, problems := manifest.Parse("croft.yaml", []byte(file))
	e, more := estate.Build(d)
	if err := slices.Concat(problems, more).Err(); err != nil {
		t.Fatal(err)
	}
	for _, o := range (nodes.Wall{}).Pool(&e.Platform, e.FindPool("jobs")) {
		if class, ok := o.(*unstructured.Unstructured); ok && class.GetKind() == "EC2NodeClass" {
			return class
		}
	}
	t.Fatal("there is no EC2NodeClass")
	return nil
}

func parseMapping(t *testing.T, text string) map[string]any {
	t.Helper()
	m := map[string]any{}
	if err := yaml.Unmarshal([]byte(strings.ReplaceAll(text, "\t", " ")), &m); err != nil {
		t.Fatal(err)
	}
	return m
}

// convertToMap returns a value with the types of decoded JSON.
func convertToMap(t *testing.T, v any) map[string]any {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	m := map[string]any{}
	if err := json.Unmarshal(data, &m); err != nil {
		t.Fatal(err)
	}
	return m
}

// markPaths marks the paths of all set fields. List indexes are not part of a path.
func markPaths(v any, path string, marked map[string]bool) {
	marked[path] = true
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			markPaths(value, path+"."+key, marked)
		}
	case []any:
		for _, value := range v {
			markPaths(value, path, marked)
		}
	}
}

// listFields returns the paths of all fields of a type and its nested types.
func listFields(t reflect.Type, path string) []string {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return []string{path}
	}
	var all []string
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		all = append(all, listFields(t.Field(i).Type, path+"."+name)...)
	}
	return all
}
