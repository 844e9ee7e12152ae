package nodenetworks

import (
	"context"
	"testing"
	"time"

	"github.com/awslabs/operatorpkg/status"
	dto "github.com/prometheus/client_model/go"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/scheme"
	"croft.dev/croft/internal/secondary"
)

var (
	born     = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	networks = []secondary.NodeNetwork{{Network: "n3", MAC: "02:00:00:00:00:03"}}
	pending  = corev1.Taint{Key: v1alpha1.NetworksTaint, Value: v1alpha1.NetworksTaintValue, Effect: corev1.TaintEffectNoSchedule}
	others   = corev1.Taint{Key: v1alpha1.DefaultNodePoolKey, Value: "telco", Effect: corev1.TaintEffectNoExecute}
)

// readyNode is a node that pods may come to, but for the taint.
func readyNode() *seen {
	return &seen{
		node: &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{
				Name: "a", CreationTimestamp: metav1.NewTime(born), Labels: map[string]string{v1alpha1.NodeNetworksLabel: "true"},
				Annotations: map[string]string{v1alpha1.NodeNetworksAnnotation: secondary.WriteNodeNetworks(networks)},
			},
			Spec:   corev1.NodeSpec{ProviderID: "aws:///us-west-2a/i-1", Taints: []corev1.Taint{others, pending}},
			Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: v1alpha1.ConditionNetworksReady, Status: corev1.ConditionTrue}}},
		},
		claim: &karpenterv1.NodeClaim{
			ObjectMeta: metav1.ObjectMeta{Name: "telco-1", UID: "u1", Labels: map[string]string{karpenterv1.NodePoolLabelKey: "telco"}},
			Status: karpenterv1.NodeClaimStatus{
				ProviderID: "aws:///us-west-2a/i-1",
				Conditions: []status.Condition{{Type: karpenterv1.ConditionTypeRegistered, Status: metav1.ConditionTrue}},
			},
		},
		attached: networks,
	}
}

// TestDecide wants the taint to stay until all of it is so, and not a moment longer.
func TestDecide(t *testing.T) {
	want := secondary.WriteNodeNetworks(networks)
	for name, test := range map[string]struct {
		change  func(*seen)
		listed  string
		release bool
	}{
		"all is so":         {func(*seen) {}, want, true},
		"no taint any more": {func(s *seen) { s.node.Spec.Taints = s.node.Spec.Taints[:1] }, want, false},
		"no claim":          {func(s *seen) { s.claim, s.attached = nil, nil }, want, false},
		"not registered":    {func(s *seen) { s.claim.Status.Conditions = nil }, want, false},
		"registration failed": {func(s *seen) {
			s.claim.Status.Conditions[0].Status = metav1.ConditionUnknown
		}, want, false},
		"not all attached":   {func(s *seen) { s.attached = nil }, want, false},
		"the agent is late":  {func(s *seen) { s.node.Status.Conditions = nil }, want, false},
		"the agent waits":    {func(s *seen) { s.node.Status.Conditions[0].Status = corev1.ConditionFalse }, want, false},
		"Ready is not it":    {func(s *seen) { s.node.Status.Conditions[0].Type = corev1.NodeReady }, want, false},
		"nothing listed yet": {func(s *seen) { s.node.Annotations = nil }, want, false},
		"another list": {func(s *seen) {
			s.node.Annotations[v1alpha1.NodeNetworksAnnotation] = "[]"
		}, want, false},
		"not attached, nothing listed": {func(s *seen) { s.attached, s.node.Annotations = nil, nil }, "", false},
		"the pool gave it up":          {func(s *seen) { s.attached, s.node.Annotations, s.gaveUp = nil, nil, true }, "", true},
		"the pool gave it up, and the claim is not registered": {func(s *seen) {
			s.gaveUp, s.claim.Status.Conditions = true, nil
		}, want, false},
	} {
		s := readyNode()
		test.change(s)
		if listed, release := decide(s); listed != test.listed || release != test.release {
			t.Errorf("%s: %q, release: %t", name, listed, release)
		}
	}
}

// TestPass plays a node's first minute, with a write that loses a race.
func TestPass(t *testing.T) {
	s := readyNode()
	s.node.Annotations, s.node.Status = nil, corev1.NodeStatus{}
	lost := 0
	c := fake.NewClientBuilder().WithScheme(scheme.New()).WithStatusSubresource(s.node, s.claim).WithObjects(s.node, s.claim).
		WithInterceptorFuncs(interceptor.Funcs{Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, options ...client.PatchOption) error {
			if lost > 0 {
				lost--
				return apierrors.NewConflict(schema.GroupResource{Resource: "nodes"}, o.GetName(), nil)
			}
			return c.Patch(ctx, o, p, options...)
		}}).Build()
	recorder := events.NewFakeRecorder(10)
	controller := &Controller{client: c, recorder: recorder, now: func() time.Time { return born.Add(7 * time.Second) }}
	pools := map[string]bool{"telco": true}
	pass := func(again bool) *corev1.Node {
		t.Helper()
		result, err := controller.pass(t.Context(), pools)
		if err != nil || (result.RequeueAfter > 0) != again {
			t.Fatalf("%v, %v", result, err)
		}
		node := &corev1.Node{}
		if err := c.Get(t.Context(), client.ObjectKey{Name: "a"}, node); err != nil {
			t.Fatal(err)
		}
		return node
	}
	if n := pass(false); len(n.Spec.Taints) != 2 || len(n.Annotations) > 0 {
		t.Errorf("before anything is attached: %v, %v", n.Spec.Taints, n.Annotations)
	}
	controller.Publish(map[string][]secondary.NodeNetwork{"u1": networks})
	lost = 1
	pass(true)
	n := pass(false)
	if n.Annotations[v1alpha1.NodeNetworksAnnotation] != secondary.WriteNodeNetworks(networks) || len(n.Spec.Taints) != 2 {
		t.Errorf("when all is attached: %v, %v", n.Spec.Taints, n.Annotations)
	}
	if got := waiting(t); got != float64(born.Unix()) {
		t.Errorf("the oldest node waits since %v", got)
	}
	n.Status.Conditions = readyNode().node.Status.Conditions
	if err := c.Status().Update(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	if n := pass(false); len(n.Spec.Taints) != 1 || n.Spec.Taints[0] != others {
		t.Errorf("when the agent is done: %v", n.Spec.Taints)
	}
	m := &dto.Metric{}
	if err := networksSeconds.WithLabelValues("telco").(interface{ Write(*dto.Metric) error }).Write(m); err != nil || m.Histogram.GetSampleSum() != 7 {
		t.Errorf("the taint stood for %v: %v", m.Histogram, err)
	}
	pass(false)
	if got := waiting(t); got != 0 || len(recorder.Events) != 1 {
		t.Errorf("a node waits since %v; there are %d events", got, len(recorder.Events))
	}
}

// waiting is since when telco's oldest node waits.
func waiting(t *testing.T) float64 {
	t.Helper()
	m := &dto.Metric{}
	if err := waitingSince.WithLabelValues("telco").Write(m); err != nil {
		t.Fatal(err)
	}
	return m.Gauge.GetValue()
}
