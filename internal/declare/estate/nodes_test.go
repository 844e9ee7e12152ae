package estate_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/declare/manifest"
)

func TestExplainUnschedulable(t *testing.T) {
	d, problems := manifest.Parse("croft.yaml", []byte(`
platform: {clusterName: demo, nodeClass: {aws: {role: nodes}}}
pools:
  apps: {instances: {capacityTypes: [on-demand], instanceTypes: [m5.large, m5.4xlarge]}}
  open: {instances: {requirements: [{key: example.org/disk, operator: In, values: [ssd]}, {key: karpenter.k8s.aws/instance-generation, operator: Gt, values: ["4"]}]}}
tenants:
  shop: {pool: apps}
`))
	e, more := estate.Build(d)
	if len(problems)+len(more) > 0 {
		t.Fatal(problems, more)
	}
	for _, c := range []struct{ pool, pod, why string }{
		{"apps", `{}`, ""},
		{"apps", `{nodeSelector: {node.kubernetes.io/instance-type: m5.large}}`, ""},
		{"apps", `{nodeSelector: {node.kubernetes.io/instance-type: c5.large}}`,
			"spec.nodeSelector: node.kubernetes.io/instance-type In [c5.large]: nodes have [m5.4xlarge, m5.large] in pool apps"},
		{"apps", `{nodeSelector: {beta.kubernetes.io/instance-type: c5.large}}`, "nodes have [m5.4xlarge, m5.large]"},
		{"apps", `{nodeSelector: {kubernetes.io/arch: arm64}}`, "nodes have [amd64]"},
		{"apps", `{nodeSelector: {kubernetes.io/os: windows}}`, "nodes have [linux]"},
		{"apps", `{nodeSelector: {karpenter.sh/capacity-type: spot}}`, "nodes have [on-demand]"},
		{"apps", `{nodeSelector: {karpenter.sh/nodepool: open}}`, "nodes have [apps]"},
		{"apps", `{nodeSelector: {karpenter.k8s.aws/instance-family: c5}}`, "nodes have [m5]"},
		{"apps", `{nodeSelector: {karpenter.k8s.aws/instance-size: 4xlarge}}`, ""},
		{"apps", `{nodeSelector: {karpenter.k8s.aws/instance-cpu: "64"}}`, ""},
		{"apps", `{nodeSelector: {topology.kubernetes.io/zone: us-east-1a}}`, ""},
		{"apps", `{nodeSelector: {topology.ebs.csi.aws.com/zone: us-east-1a}}`, ""},
		{"apps", `{nodeSelector: {disk: ssd}}`, "no node has the label disk in pool apps"},
		{"apps", `{nodeSelector: {example.org/disk: ssd}}`, "no node has the label example.org/disk"},
		{"open", `{nodeSelector: {example.org/disk: ssd}}`, ""},
		{"open", `{nodeSelector: {example.org/disk: hdd}}`, "nodes have [ssd]"},
		{"open", `{nodeSelector: {kubernetes.io/arch: arm64}}`, "nodes have [amd64]"},
		{"open", `{nodeSelector: {karpenter.k8s.aws/instance-generation: "4"}}`, "no node has such a value"},
		{"apps", formatNodeAffinity(`[{matchExpressions: [{key: node.kubernetes.io/instance-type, operator: In, values: [c5.large]}]}]`), "spec.affinity.nodeAffinity: "},
		{"apps", formatNodeAffinity(`[{matchExpressions: [{key: disk, operator: In, values: [ssd]}]}, {matchExpressions: [{key: kubernetes.io/arch, operator: In, values: [amd64]}]}]`), ""},
		{"apps", formatNodeAffinity(`[{matchExpressions: [{key: disk, operator: Exists}]}]`), "disk Exists: no node has the label disk"},
		{"apps", formatNodeAffinity(`[{matchExpressions: [{key: disk, operator: DoesNotExist}, {key: rack, operator: NotIn, values: [a]}]}]`), ""},
		{"apps", formatNodeAffinity(`[{matchExpressions: [{key: karpenter.sh/capacity-type, operator: NotIn, values: [on-demand]}]}]`), "nodes have [on-demand]"},
		{"apps", `{nodeSelector: {node.kubernetes.io/instance-type: m5.large}, ` +
			strings.TrimPrefix(formatNodeAffinity(`[{matchExpressions: [{key: node.kubernetes.io/instance-type, operator: NotIn, values: [m5.large]}]}]`), "{"), "nodes have [m5.large]"},
	} {
		var pod corev1.PodSpec
		if err := yaml.UnmarshalStrict([]byte(c.pod), &pod); err != nil {
			t.Fatal(err)
		}
		why := e.FindPool(c.pool).ExplainUnschedulable("node-pool", &pod)
		if (why == "") != (c.why == "") || !strings.Contains(why, c.why) {
			t.Errorf("%s in pool %s: %q, want %q", c.pod, c.pool, why, c.why)
		}
	}
}

func formatNodeAffinity(terms string) string {
	return `{affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: ` + terms + `}}}}`
}
