package adopt

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"croft.dev/croft/api/v1alpha1"
)

// TestMisfit fails if a pod that fits no new node of its pool is not reported, or if one that
// fits is.
func TestMisfit(t *testing.T) {
	a := newAdoption(t, "{}", "") // on demand, amd64
	required := func(terms string) string {
		return "{affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: " + terms + "}}}}"
	}
	for name, test := range map[string]struct{ spec, wantText string }{
		"asks for nothing":                 {"{}", ""},
		"asks for what the nodes are":      {"{nodeSelector: {kubernetes.io/arch: amd64, karpenter.sh/capacity-type: on-demand}}", ""},
		"another architecture":             {"{nodeSelector: {kubernetes.io/arch: arm64}}", "arm64"},
		"another architecture, of old":     {"{nodeSelector: {beta.kubernetes.io/arch: arm64}}", "arm64"},
		"an instance type":                 {"{nodeSelector: {node.kubernetes.io/instance-type: m5.large}}", ""},
		"a label of the provider":          {"{nodeSelector: {karpenter.kwok.sh/instance-family: m}}", ""},
		"another provider's label":         {"{nodeSelector: {karpenter.k8s.aws/instance-family: m}}", "karpenter.k8s.aws/instance-family"},
		"a label of its own":               {"{nodeSelector: {team: shop}}", `label "team" does not have known values`},
		"one node by its name":             {"{nodeSelector: {kubernetes.io/hostname: node-1}}", "kubernetes.io/hostname"},
		"the NodePool of old":              {"{nodeSelector: {karpenter.sh/nodepool: everybody}}", "everybody"},
		"another pool, which croft puts":   {"{nodeSelector: {KEY: other}}", ""},
		"spot alone":                       {required("[{matchExpressions: [{key: karpenter.sh/capacity-type, operator: In, values: [spot]}]}]"), "spot"},
		"spot or on demand":                {required("[{matchExpressions: [{key: karpenter.sh/capacity-type, operator: In, values: [spot]}]}, {matchExpressions: [{key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}]}]"), ""},
		"without a label that no node has": {required("[{matchExpressions: [{key: team, operator: DoesNotExist}]}]"), ""},
		"spot rather":                      {"{affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, preference: {matchExpressions: [{key: karpenter.sh/capacity-type, operator: In, values: [spot]}]}}]}}}", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var pod corev1.Pod
			if err := yaml.UnmarshalStrict([]byte(strings.ReplaceAll(test.spec, "KEY", a.estate.Platform.NodePoolKey)), &pod.Spec); err != nil {
				t.Fatal(err)
			}
			before := pod.DeepCopy()
			got := a.explainMisfit(&pod, "apps")
			if (got == "") != (test.wantText == "") || !strings.Contains(got, test.wantText) {
				t.Errorf("got %q, want %q", got, test.wantText)
			}
			if before.String() != pod.String() {
				t.Error("the pod itself was changed")
			}
		})
	}
}

// TestFitOfAWS fails if a label that only AWS instances have is treated as one that no node
// has.
func TestFitOfAWS(t *testing.T) {
	a := newAdoption(t, "{}", "")
	a.estate.FindPool("apps").Class = v1alpha1.NodeClass{Ref: &v1alpha1.NodeClassRef{Group: "karpenter.k8s.aws", Kind: "EC2NodeClass", Name: "default"}}
	pod := corev1.Pod{Spec: corev1.PodSpec{NodeSelector: map[string]string{
		"karpenter.k8s.aws/instance-family": "m5", "topology.k8s.aws/zone-id": "usw2-az1",
	}}}
	if why := a.explainMisfit(&pod, "apps"); why != "" {
		t.Error(why)
	}
}
