package nodenetworks

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/declare/scheme"
	"croft.dev/croft/internal/declare/secondary"
	"croft.dev/croft/internal/walls/wall"
	"croft.dev/croft/internal/walls/wall/nodes"
)

// servedKinds are the kinds that the cluster serves.
type servedKinds []schema.GroupVersionKind

func (s servedKinds) Look(context.Context, ...schema.GroupVersionKind) ([]schema.GroupVersionKind, error) {
	return s, nil
}

// TestReconcileNodesWithReadinessRule covers a pool with a rule: the operator leaves the taint
// to the node readiness controller, reports when it may be removed, reports the removal once,
// and removes the taint itself when the rule is deleted.
func TestReconcileNodesWithReadinessRule(t *testing.T) {
	s := newReadyNode()
	s.node.UID = "n1"
	known := scheme.New()
	known.AddKnownTypeWithName(nodes.ReadinessRule, &unstructured.Unstructured{})
	known.AddKnownTypeWithName(nodes.ReadinessRule.GroupVersion().WithKind("NodeReadinessRuleList"), &unstructured.UnstructuredList{})
	rule := wall.ReadinessObjects(&estate.Pool{Name: "telco", PoolSpec: v1alpha1.PoolSpec{WaitForNetworks: true}})[0]
	c := fake.NewClientBuilder().WithScheme(known).WithStatusSubresource(s.node, s.claim).WithObjects(s.node, s.claim, rule).Build()
	recorder := events.NewFakeRecorder(10)
	controller := &Controller{
		client: c, recorder: recorder, clock: clocktesting.NewFakePassiveClock(born.Add(7 * time.Second)), rules: servedKinds{nodes.ReadinessRule},
		attached: map[string][]secondary.NodeNetwork{"u1": networks},
	}
	pass := func() *corev1.Node {
		t.Helper()
		if _, err := controller.reconcileNodes(t.Context(), map[string]bool{"telco": true}); err != nil {
			t.Fatal(err)
		}
		node := &corev1.Node{}
		if err := c.Get(t.Context(), client.ObjectKey{Name: "a"}, node); err != nil {
			t.Fatal(err)
		}
		return node
	}
	pass()
	n := pass()
	if !hasNetworksTaint(n) || !readCondition(n).isTrue() || len(recorder.Events) != 0 {
		t.Errorf("with a rule: taints %v, %+v, %d events", n.Spec.Taints, readCondition(n), len(recorder.Events))
	}
	if readWaiting(t) == 0 {
		t.Error("the metric does not count the waiting node")
	}
	with := n.DeepCopy()
	n.Spec.Taints = n.Spec.Taints[:1] // by the node readiness controller
	if err := c.Update(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	pass()
	pass()
	if len(recorder.Events) != 1 || readWaiting(t) != 0 {
		t.Errorf("the taint is removed: %d events, waiting since %v", len(recorder.Events), readWaiting(t))
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(n), n); err != nil {
		t.Fatal(err)
	}
	n.Spec.Taints = with.Spec.Taints
	n.Status.Conditions = n.Status.Conditions[:1]
	if err := c.Update(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	// The node readiness controller's finalizer keeps a rule until it has cleaned up.
	rule.SetFinalizers([]string{"readiness.node.x-k8s.io/cleanup-taints"})
	if err := c.Update(t.Context(), rule); err != nil {
		t.Fatal(err)
	}
	if err := c.Delete(t.Context(), rule); err != nil {
		t.Fatal(err)
	}
	if n := pass(); hasNetworksTaint(n) {
		t.Errorf("without the rule: %v", n.Spec.Taints)
	}
	// If the cluster does not serve the kind, the operator does not list rules.
	controller.rules, controller.client = servedKinds(nil), fake.NewClientBuilder().WithScheme(scheme.New()).Build()
	if ruled, err := controller.listRuledPools(t.Context()); err != nil || len(ruled) > 0 {
		t.Error(ruled, err)
	}
}
