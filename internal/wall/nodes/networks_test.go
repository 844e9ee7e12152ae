package nodes_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/estate"
	"croft.dev/croft/internal/wall/nodes"
)

// TestWaitForNetworks wants the startup taint and the agent's label on pools that wait, and
// no change to others: their nodes would be replaced.
func TestWaitForNetworks(t *testing.T) {
	platform := &estate.Platform{PlatformSpec: v1alpha1.PlatformSpec{NodePoolKey: v1alpha1.DefaultNodePoolKey}}
	for _, waits := range []bool{false, true} {
		pool := &estate.Pool{Name: "telco", PoolSpec: v1alpha1.PoolSpec{SecondaryNetworks: []string{"n3"}, WaitForNetworks: waits}}
		pool.Class.AWS = &v1alpha1.AWSNodeClass{Role: "nodes"}
		all := nodes.Wall{}.Pool(platform, pool)
		at := slices.IndexFunc(all, func(o client.Object) bool { _, ok := o.(*karpenterv1.NodePool); return ok })
		template := all[at].(*karpenterv1.NodePool).Spec.Template
		_, labelled := template.Labels[v1alpha1.NodeNetworksLabel]
		want := []corev1.Taint{{Key: "readiness.k8s.io/croft-networks", Value: "pending", Effect: corev1.TaintEffectNoSchedule}}
		if !waits {
			want = nil
		}
		if !slices.Equal(template.Spec.StartupTaints, want) || labelled != waits {
			t.Errorf("waits: %t: taints %v, labels %v", waits, template.Spec.StartupTaints, template.Labels)
		}
	}
}
