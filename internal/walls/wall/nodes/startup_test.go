package nodes_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/walls/wall/nodes"
)

// TestStartupTaints expects the pool's startup taints in its NodePool, together with the
// taint of waitForNetworks. The readiness rule must be on the taint of waitForNetworks only.
func TestStartupTaints(t *testing.T) {
	platform := &estate.Platform{PlatformSpec: v1alpha1.PlatformSpec{NodePoolKey: v1alpha1.DefaultNodePoolKey}}
	cilium := corev1.Taint{Key: "node.cilium.io/agent-not-ready", Value: "true", Effect: corev1.TaintEffectNoExecute}
	networks := corev1.Taint{Key: "readiness.k8s.io/croft-networks", Value: "pending", Effect: corev1.TaintEffectNoSchedule}
	for name, test := range map[string]struct {
		waits bool
		want  []corev1.Taint
	}{
		"alone":         {false, []corev1.Taint{cilium}},
		"with networks": {true, []corev1.Taint{networks, cilium}},
	} {
		pool := &estate.Pool{Name: "apps", PoolSpec: v1alpha1.PoolSpec{
			StartupTaints: []v1alpha1.StartupTaint{{Key: cilium.Key, Value: cilium.Value, Effect: cilium.Effect}}, WaitForNetworks: test.waits,
		}}
		all := nodes.Wall{}.Pool(platform, pool)
		at := slices.IndexFunc(all, func(o client.Object) bool { _, ok := o.(*karpenterv1.NodePool); return ok })
		if got := all[at].(*karpenterv1.NodePool).Spec.Template.Spec.StartupTaints; !slices.Equal(got, test.want) {
			t.Errorf("%s: %v", name, got)
		}
		if rules := (nodes.Wall{}).Readiness(pool); (len(rules) == 1) != test.waits {
			t.Errorf("%s: %v", name, rules)
		}
	}
}
