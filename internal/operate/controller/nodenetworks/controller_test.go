package nodenetworks

import (
	"context"
	"testing"
	"time"

	"github.com/awslabs/operatorpkg/status"
	dto "github.com/prometheus/client_model/go"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/scheme"
	"croft.dev/croft/internal/declare/secondary"
)

var (
	born     = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	networks = []secondary.NodeNetwork{{Network: "n3", MAC: "02:00:00:00:00:03"}}
	pending  = corev1.Taint{Key: v1alpha1.NetworksTaint, Value: v1alpha1.NetworksTaintValue, Effect: corev1.TaintEffectNoSchedule}
	others   = corev1.Taint{Key: v1alpha1.DefaultNodePoolKey, Value: "telco", Effect: corev1.TaintEffectNoExecute}
)

// newReadyNode returns a node that is ready for pods, except for the taint.
func newReadyNode() *observation {
	return &observation{
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
		attached: networks, plugins: newPlugins(labels.Nothing(), nil, nil),
	}
}

// TestEvaluateNode fails if the taint is removed before all requirements are met, or later, or
// if the condition does not name the next requirement.
func TestEvaluateNode(t *testing.T) {
	want := secondary.WriteNodeNetworks(networks)
	const (
		late, attaching   = v1alpha1.ReasonNotRegistered, v1alpha1.ReasonInterfacesPending
		linking, plugging = v1alpha1.ReasonLinksPending, v1alpha1.ReasonPluginsPending
		done              = v1alpha1.ReasonPodNetworksReady
	)
	for name, test := range map[string]struct {
		change         func(*observation)
		listed, reason string
	}{
		"all is so": {func(*observation) {}, want, done},
		"no claim":  {func(s *observation) { s.claim, s.attached = nil, nil }, want, late},
		"not registered": {func(s *observation) {
			s.claim.Status.Conditions = nil
		}, want, late},
		"registration failed": {func(s *observation) {
			s.claim.Status.Conditions[0].Status = metav1.ConditionUnknown
		}, want, late},
		"no taint before it is registered": {func(s *observation) {
			s.node.Spec.Taints, s.claim.Status.Conditions = nil, nil
		}, want, late},
		"not all attached":   {func(s *observation) { s.attached = nil }, want, attaching},
		"the agent is late":  {func(s *observation) { s.node.Status.Conditions = nil }, want, linking},
		"the agent waits":    {func(s *observation) { s.node.Status.Conditions[0].Status = corev1.ConditionFalse }, want, linking},
		"Ready is not it":    {func(s *observation) { s.node.Status.Conditions[0].Type = corev1.NodeReady }, want, linking},
		"nothing listed yet": {func(s *observation) { s.node.Annotations = nil }, want, attaching},
		"another list": {func(s *observation) {
			s.node.Annotations[v1alpha1.NodeNetworksAnnotation] = "[]"
		}, want, attaching},
		"not attached, nothing listed": {func(s *observation) { s.attached, s.node.Annotations = nil, nil }, "", attaching},
		"DaemonSets may not be read":   {func(s *observation) { s.plugins, s.unreadableReason = nil, "forbidden" }, want, plugging},
		"Multus is not Ready":          {func(s *observation) { s.plugins = newPlugins(byName, []appsv1.DaemonSet{newDaemonSet("multus")}, nil) }, want, plugging},
		"the pool gave it up": {func(s *observation) {
			s.attached, s.node.Annotations, s.gaveUp = nil, nil, true
		}, "", v1alpha1.ReasonNotAwaited},
		"the pool gave it up, and the claim is not registered": {func(s *observation) {
			s.gaveUp, s.claim.Status.Conditions = true, nil
		}, want, late},
		"pods are there already": {func(s *observation) {
			s.node.Spec.Taints, s.node.Status.Conditions, s.attached = nil, nil, nil
			s.node.Labels[karpenterv1.NodeRegisteredLabelKey] = "true"
		}, want, done},
	} {
		s := newReadyNode()
		test.change(s)
		v := evaluateNode(s)
		if v.reason != test.reason || v.isTrue() != (v.reason == done || v.reason == v1alpha1.ReasonNotAwaited) || v.message == "" {
			t.Errorf("%s: %+v", name, v)
		}
		if listed := s.getAnnotation(); listed != test.listed {
			t.Errorf("%s: the node lists %s", name, listed)
		}
	}
}

// TestReconcileNodes covers a node's first minute, with a write that loses a race.
func TestReconcileNodes(t *testing.T) {
	s := newReadyNode()
	s.node.Annotations, s.node.Status = nil, corev1.NodeStatus{}
	lost := 0
	c := fake.NewClientBuilder().WithScheme(scheme.New()).WithStatusSubresource(s.node, s.claim).WithObjects(s.node, s.claim, ptr.To(newDaemonSet("multus"))).
		WithInterceptorFuncs(interceptor.Funcs{Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, options ...client.PatchOption) error {
			if lost > 0 {
				lost--
				return apierrors.NewConflict(schema.GroupResource{Resource: "nodes"}, o.GetName(), nil)
			}
			stored := &corev1.Node{}
			if err := c.Get(ctx, client.ObjectKeyFromObject(o), stored); err != nil {
				return err
			}
			if !hasNetworksTaint(o.(*corev1.Node)) && !readCondition(stored).isTrue() {
				t.Errorf("the taint is removed while the condition is %+v", readCondition(stored))
			}
			return c.Patch(ctx, o, p, options...)
		}}).Build()
	recorder := events.NewFakeRecorder(10)
	controller := &Controller{
		client: c, recorder: recorder, clock: clocktesting.NewFakePassiveClock(born.Add(7 * time.Second)),
		requiredPlugins: secondary.Plugins{Namespace: "kube-system", Labels: byName}, rules: servedKinds(nil),
	}
	pools := map[string]bool{"telco": true}
	pass := func(again bool) *corev1.Node {
		t.Helper()
		result, err := controller.reconcileNodes(t.Context(), pools)
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
	if got := readWaiting(t); got != float64(born.Unix()) {
		t.Errorf("the oldest node waits since %v", got)
	}
	n.Status.Conditions = append(n.Status.Conditions, newReadyNode().node.Status.Conditions...)
	if err := c.Status().Update(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	if n := pass(false); len(n.Spec.Taints) != 2 || readCondition(n).reason != v1alpha1.ReasonPluginsPending {
		t.Errorf("when the agent is done, and Multus is not: %v, %+v", n.Spec.Taints, readCondition(n))
	}
	if err := c.Create(t.Context(), ptr.To(newPod("multus", "a", true))); err != nil {
		t.Fatal(err)
	}
	if n := pass(false); len(n.Spec.Taints) != 1 || n.Spec.Taints[0] != others {
		t.Errorf("when Multus is Ready: %v", n.Spec.Taints)
	} else if v := readCondition(n); !v.isTrue() || v.message != "multus" {
		t.Errorf("when Multus is Ready, the condition is %+v", v)
	}
	m := &dto.Metric{}
	if err := networksSeconds.WithLabelValues("telco").(interface{ Write(*dto.Metric) error }).Write(m); err != nil || m.Histogram.GetSampleSum() != 7 {
		t.Errorf("the taint was there for %v: %v", m.Histogram, err)
	}
	pass(false)
	if got := readWaiting(t); got != 0 || len(recorder.Events) != 1 {
		t.Errorf("a node waits since %v; there are %d events", got, len(recorder.Events))
	}
}

// readWaiting returns the time since which telco's oldest node waits.
func readWaiting(t *testing.T) float64 {
	t.Helper()
	m := &dto.Metric{}
	if err := waitingSince.WithLabelValues("telco").Write(m); err != nil {
		t.Fatal(err)
	}
	return m.Gauge.GetValue()
}
