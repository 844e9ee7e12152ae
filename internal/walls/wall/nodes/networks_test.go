package nodes_test

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/walls/wall/nodes"
)

// TestWaitForNetworks expects the startup taint and the agent's label on pools that wait, and
// no change of other pools: a change would replace their nodes.
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

// TestReadinessRule expects a rule for each pool that waits. The rule must be on the taint
// that the pool's nodes start with, and on these nodes only. Its name must fit into the
// annotation that the controller adds to nodes.
func TestReadinessRule(t *testing.T) {
	pool := &estate.Pool{Name: "telco", PoolSpec: v1alpha1.PoolSpec{WaitForNetworks: true}}
	all := nodes.Wall{}.Readiness(pool)
	if len(all) != 1 || all[0].GetName() != "croft-telco" {
		t.Fatalf("%v", all)
	}
	spec := all[0].(*unstructured.Unstructured).Object["spec"]
	want := map[string]any{
		"conditions":      []any{map[string]any{"type": "croft.dev/PodNetworksReady", "requiredStatus": "True"}},
		"enforcementMode": "bootstrap-only", "dryRun": false,
		"taint":        map[string]any{"key": "readiness.k8s.io/croft-networks", "value": "pending", "effect": "NoSchedule"},
		"nodeSelector": map[string]any{"matchLabels": map[string]any{"croft.dev/secondary-networks": "true", "karpenter.sh/nodepool": "telco"}},
	}
	if !equality.Semantic.DeepEqual(spec, want) {
		t.Errorf("%v", spec)
	}
	names := map[string]bool{}
	for _, name := range []string{strings.Repeat("a", 37), strings.Repeat("a", 38), strings.Repeat("a", 62) + "b", strings.Repeat("a", 63)} {
		pool.Name = name
		rule := nodes.Wall{}.Readiness(pool)[0].GetName()
		if problems := validation.IsQualifiedName("readiness.k8s.io/bootstrap-completed-" + rule); len(problems) > 0 || names[rule] {
			t.Errorf("%s: %s, %v", name, rule, problems)
		}
		names[rule] = true
	}
	if all := (nodes.Wall{}).Readiness(&estate.Pool{Name: "apps"}); len(all) > 0 {
		t.Errorf("a pool that waits for nothing has %v", all)
	}
}
