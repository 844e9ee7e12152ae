package adopt

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// TestComparePool fails if the plan does not report that nodes with running pods would be
// replaced, or warns if none would be.
func TestComparePool(t *testing.T) {
	pool := func(change func(*karpenterv1.NodePool)) *karpenterv1.NodePool {
		p := &karpenterv1.NodePool{}
		p.Name = "apps"
		p.Spec.Template.Labels = map[string]string{"node-pool": "apps"}
		p.Spec.Template.Spec.NodeClassRef = &karpenterv1.NodeClassReference{Group: "karpenter.kwok.sh", Kind: "KWOKNodeClass", Name: "default"}
		p.Spec.Disruption.ConsolidationPolicy = karpenterv1.ConsolidationPolicyWhenEmpty
		change(p)
		return p
	}
	tainted := func(p *karpenterv1.NodePool) {
		p.Spec.Template.Spec.Taints = []corev1.Taint{{Key: "node-pool", Value: "apps", Effect: corev1.TaintEffectNoExecute}}
	}
	budget := func(b karpenterv1.Budget) func(*karpenterv1.NodePool) {
		return func(p *karpenterv1.NodePool) {
			tainted(p)
			p.Spec.Disruption.Budgets = []karpenterv1.Budget{{Nodes: "10%"}, b}
		}
	}
	drifted := []karpenterv1.DisruptionReason{karpenterv1.DisruptionReasonDrifted}
	nightly := "0 2 * * *"
	for name, test := range map[string]struct {
		was, will func(*karpenterv1.NodePool)
		replaces  bool
		wantText  string
	}{
		"the same":                    {tainted, tainted, false, "does not change"},
		"a taint more":                {func(*karpenterv1.NodePool) {}, tainted, true, "REPLACES ITS NODES"},
		"a taint less":                {tainted, func(*karpenterv1.NodePool) {}, true, "REPLACES ITS NODES"},
		"another label":               {func(p *karpenterv1.NodePool) { p.Spec.Template.Labels = nil }, func(*karpenterv1.NodePool) {}, true, "REPLACES ITS NODES"},
		"an annotation":               {func(*karpenterv1.NodePool) {}, func(p *karpenterv1.NodePool) { p.Spec.Template.Annotations = map[string]string{"a": "b"} }, true, "REPLACES ITS NODES"},
		"an expiry":                   {func(*karpenterv1.NodePool) {}, func(p *karpenterv1.NodePool) { p.Spec.Template.Spec.ExpireAfter.Duration = ptr.To(time.Hour) }, true, "REPLACES ITS NODES"},
		"another node class":          {func(p *karpenterv1.NodePool) { p.Spec.Template.Spec.NodeClassRef.Name = "old" }, func(*karpenterv1.NodePool) {}, true, "REPLACES ITS NODES"},
		"held by a budget":            {func(*karpenterv1.NodePool) {}, budget(karpenterv1.Budget{Nodes: "0", Reasons: drifted}), false, "only new nodes get the new taints"},
		"held by a budget in percent": {func(*karpenterv1.NodePool) {}, budget(karpenterv1.Budget{Nodes: "0%"}), false, "prevents the replacement of running nodes"},
		"a budget of some hours blocks no replacement":   {func(*karpenterv1.NodePool) {}, budget(karpenterv1.Budget{Nodes: "0", Schedule: &nightly}), true, "REPLACES ITS NODES"},
		"a budget of another reason as well":             {func(*karpenterv1.NodePool) {}, budget(karpenterv1.Budget{Nodes: "0", Reasons: []karpenterv1.DisruptionReason{karpenterv1.DisruptionReasonEmpty}}), true, "REPLACES ITS NODES"},
		"a budget that leaves one blocks no replacement": {func(*karpenterv1.NodePool) {}, budget(karpenterv1.Budget{Nodes: "1"}), true, "REPLACES ITS NODES"},
		"gathers pods from now on": {tainted, func(p *karpenterv1.NodePool) {
			tainted(p)
			p.Spec.Disruption.ConsolidationPolicy = karpenterv1.ConsolidationPolicyWhenEmptyOrUnderutilized
		}, true, "GATHERS PODS"},
	} {
		t.Run(name, func(t *testing.T) {
			got := comparePool(pool(test.was), pool(test.will))
			if got.ReplacesNodes != test.replaces || !strings.Contains(got.State, test.wantText) {
				t.Errorf("replaces: %t, want %t; state %q, want %q", got.ReplacesNodes, test.replaces, got.State, test.wantText)
			}
		})
	}
}

// TestRefusal fails if the plan accepts a NodePool of a fixed size, which Karpenter does not
// let croft change into one of its own.
func TestRefusal(t *testing.T) {
	live := &karpenterv1.NodePool{}
	live.Name = "gateway"
	if why := explainRefusal(live); why != "" {
		t.Errorf("a NodePool without replicas: %s", why)
	}
	live.Spec.Replicas = ptr.To[int64](0)
	if why := explainRefusal(live); !strings.Contains(why, "such as gateway-dynamic") {
		t.Errorf("a NodePool with replicas: %q", why)
	}
}
