package secondarynetwork

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/scheme"
	"croft.dev/croft/internal/declare/secondary"
	"croft.dev/croft/internal/operate/controller/declared"
	"croft.dev/croft/internal/operate/controller/status"
)

// fakeLooker is a looker. If it is true, the cluster serves whereabouts' kind.
type fakeLooker bool

func (l fakeLooker) Look(context.Context, ...schema.GroupVersionKind) ([]schema.GroupVersionKind, error) {
	if l {
		return []schema.GroupVersionKind{secondary.IPPool}, nil
	}
	return nil, nil
}

// testController is a Controller with one network on its own fake cluster.
type testController struct {
	*testing.T
	*Controller
	client.Client
	events *events.FakeRecorder
	// writes counts patches of the network's status.
	writes int
}

func newTestController(t *testing.T) *testController {
	t.Helper()
	s := scheme.New()
	s.AddKnownTypeWithName(secondary.IPPool, &unstructured.Unstructured{})
	s.AddKnownTypeWithName(secondary.IPPool.GroupVersion().WithKind("IPPoolList"), &unstructured.UnstructuredList{})
	platform := &v1alpha1.Platform{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.PlatformName}, Spec: v1alpha1.PlatformSpec{
		ClusterName: "demo", NodeClass: v1alpha1.NodeClass{Kwok: &v1alpha1.KwokNodeClass{}},
	}}
	network := &v1alpha1.SecondaryNetwork{ObjectMeta: metav1.ObjectMeta{Name: "n4", UID: "u4", Generation: 1}, Spec: v1alpha1.SecondaryNetworkSpec{
		Zones: []v1alpha1.SecondaryNetworkZone{
			{Zone: "a", Subnet: "subnet-a", CIDR: "10.0.4.0/24", PodCIDR: "10.0.4.32/27"},
			{Zone: "b", Subnet: "subnet-b", CIDR: "10.0.5.0/24", PodCIDR: "10.0.5.32/27"},
		},
	}}
	w := &testController{T: t, events: events.NewFakeRecorder(10)}
	w.Client = fake.NewClientBuilder().WithScheme(s).WithStatusSubresource(network).WithObjects(platform, network, newIPPool("10.0.4.0"), newIPPool("10.0.5.0")).
		WithInterceptorFuncs(interceptor.Funcs{SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, options ...client.SubResourcePatchOption) error {
			w.writes++
			return c.SubResource(sub).Patch(ctx, o, p, options...)
		}}).Build()
	store := declared.New(w.Client, w.Client, clock.RealClock{})
	go func() { _ = store.Start(t.Context()) }()
	if err := wait.PollUntilContextTimeout(t.Context(), 5*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		return store.Current() != nil, nil
	}); err != nil {
		t.Fatal("no estate")
	}
	w.Controller = New(w.Client, store, w.events)
	w.pools = fakeLooker(true)
	return w
}

func newIPPool(subnet string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"range": subnet + "/24", "allocations": map[string]any{}}}}
	u.SetGroupVersionKind(secondary.IPPool)
	u.SetNamespace("kube-system")
	u.SetName(subnet + "-24")
	return u
}

// useAddresses allocates addresses of a subnet to pods, and reconciles the network.
func (w *testController) useAddresses(subnet string, addresses int) reconcile.Result {
	w.Helper()
	pool := newIPPool(subnet)
	if err := w.Get(w.Context(), client.ObjectKeyFromObject(pool), pool); err != nil {
		w.Fatal(err)
	}
	allocations := map[string]any{}
	for i := range addresses {
		allocations[fmt.Sprint(32+i)] = map[string]any{"id": "c", "podref": "core/web"}
	}
	if err := unstructured.SetNestedMap(pool.Object, runtime.DeepCopyJSON(allocations), "spec", "allocations"); err != nil {
		w.Fatal(err)
	}
	if err := w.Update(w.Context(), pool); err != nil {
		w.Fatal(err)
	}
	return w.runReconcile()
}

func (w *testController) runReconcile() reconcile.Result {
	w.Helper()
	result, err := w.Reconcile(w.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Name: "n4"}})
	if err != nil {
		w.Fatal(err)
	}
	return result
}

// expectConditions fails unless the network has these conditions. The message of AddressesAvailable
// must contain all parts of message.
func (w *testController) expectConditions(ready, available metav1.ConditionStatus, reason string, message ...string) {
	w.Helper()
	n := w.getNetwork()
	is := meta.FindStatusCondition(n.Status.Conditions, v1alpha1.ConditionAddressesAvailable)
	if is == nil || is.Status != available || is.Reason != reason {
		w.Fatalf("AddressesAvailable is %+v, not %s %s", is, available, reason)
	}
	for _, part := range message {
		if !strings.Contains(is.Message, part) {
			w.Errorf("the message lacks %q: %s", part, is.Message)
		}
	}
	if r := meta.FindStatusCondition(n.Status.Conditions, v1alpha1.ConditionReady); r == nil || r.Status != ready {
		w.Errorf("Ready is %+v, not %s", r, ready)
	}
}

func (w *testController) getNetwork() *v1alpha1.SecondaryNetwork {
	w.Helper()
	n := &v1alpha1.SecondaryNetwork{}
	if err := w.Get(w.Context(), client.ObjectKey{Name: "n4"}, n); err != nil {
		w.Fatal(err)
	}
	return n
}

// takeEvent returns the next event, or "".
func (w *testController) takeEvent() string {
	select {
	case e := <-w.events.Events:
		return e
	default:
		return ""
	}
}

// TestReconcileFullRange fills a zone's range. A warning must be emitted once, before the
// range is full, and the status must not be written while nothing changes.
func TestReconcileFullRange(t *testing.T) {
	w := newTestController(t)
	w.runReconcile()
	w.expectConditions(metav1.ConditionTrue, metav1.ConditionTrue, v1alpha1.ReasonAddressesAvailable)
	before := w.writes
	for n := range 29 {
		w.useAddresses("10.0.4.0", n)
	}
	if w.writes > before || w.takeEvent() != "" {
		t.Errorf("%d writes while pods came, and there was room for them", w.writes-before)
	}
	w.useAddresses("10.0.4.0", 29)
	w.expectConditions(metav1.ConditionTrue, metav1.ConditionTrue, v1alpha1.ReasonRangeNearlyFull, "a: 29 of 32 addresses of 10.0.4.32/27", "widen podCIDR")
	if e := w.takeEvent(); !strings.Contains(e, "Warning RangeNearlyFull") {
		t.Errorf("the event is %q", e)
	}
	w.useAddresses("10.0.4.0", 31)
	if e := w.takeEvent(); e != "" {
		t.Errorf("reported twice: %q", e)
	}
	w.useAddresses("10.0.4.0", 32)
	w.expectConditions(metav1.ConditionFalse, metav1.ConditionFalse, v1alpha1.ReasonRangeFull, "a: 32 of 32")
	if e := w.takeEvent(); !strings.Contains(e, "Warning RangeFull") {
		t.Errorf("the event is %q", e)
	}
	w.useAddresses("10.0.5.0", 30)
	w.expectConditions(metav1.ConditionFalse, metav1.ConditionFalse, v1alpha1.ReasonRangeFull, "a: 32 of 32", "b: 30 of 32")
	w.useAddresses("10.0.5.0", 0)
	w.useAddresses("10.0.4.0", 5)
	w.expectConditions(metav1.ConditionTrue, metav1.ConditionTrue, v1alpha1.ReasonAddressesAvailable)

	if got := readGauge(t, used, "a") + readGauge(t, used, "b"); got != 5 {
		t.Errorf("the metric counts %v used addresses", got)
	}
	if got := readGauge(t, total, "a"); got != 32 {
		t.Errorf("the metric counts %v addresses", got)
	}
	if err := w.Delete(t.Context(), w.getNetwork()); err != nil {
		t.Fatal(err)
	}
	w.runReconcile()
	if n := len(collectSeries(total)); n > 0 {
		t.Errorf("%d series of a deleted network are left", n)
	}
}

func readGauge(t *testing.T, v *prometheus.GaugeVec, zone string) float64 {
	t.Helper()
	var m dto.Metric
	if err := v.WithLabelValues("n4", zone).Write(&m); err != nil {
		t.Fatal(err)
	}
	return m.GetGauge().GetValue()
}

func collectSeries(v *prometheus.GaugeVec) []prometheus.Metric {
	found := make(chan prometheus.Metric, 10)
	v.Collect(found)
	close(found)
	var all []prometheus.Metric
	for m := range found {
		all = append(all, m)
	}
	return all
}

// TestWithoutWhereabouts fails if a network is not Ready on a cluster that does not serve
// whereabouts' kind, or if the kind is not looked up again.
func TestWithoutWhereabouts(t *testing.T) {
	w := newTestController(t)
	w.useAddresses("10.0.4.0", 32)
	w.expectConditions(metav1.ConditionFalse, metav1.ConditionFalse, v1alpha1.ReasonRangeFull)
	w.pools = fakeLooker(false)
	if result := w.runReconcile(); result.RequeueAfter != absent {
		t.Errorf("whereabouts is looked for again after %s", result.RequeueAfter)
	}
	n := w.getNetwork()
	if meta.FindStatusCondition(n.Status.Conditions, v1alpha1.ConditionAddressesAvailable) != nil ||
		!meta.IsStatusConditionTrue(n.Status.Conditions, v1alpha1.ConditionReady) {
		t.Errorf("without whereabouts: %+v", n.Status.Conditions)
	}
}

// TestPatchStatusKeepsOtherConditions fails if a status write overwrites a condition that
// package interfaces wrote after the status was read.
func TestPatchStatusKeepsOtherConditions(t *testing.T) {
	w := newTestController(t)
	w.runReconcile()
	before := w.getNetwork()
	stale := before.DeepCopy()
	other := before.DeepCopy()
	status.Set(&other.Status, 1, v1alpha1.ConditionInterfacesReady, metav1.ConditionFalse, v1alpha1.ReasonInterfacesMissing, "no subnet")
	if err := w.Status().Update(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	status.Set(&stale.Status, 1, v1alpha1.ConditionAddressesAvailable, metav1.ConditionFalse, v1alpha1.ReasonRangeFull, "")
	if err := w.patchStatus(t.Context(), before, stale); err == nil {
		t.Error("a status that is not the newest was written")
	}
	w.useAddresses("10.0.4.0", 32)
	n := w.getNetwork()
	if !meta.IsStatusConditionFalse(n.Status.Conditions, v1alpha1.ConditionInterfacesReady) ||
		!meta.IsStatusConditionFalse(n.Status.Conditions, v1alpha1.ConditionAddressesAvailable) {
		t.Errorf("conditions: %+v", n.Status.Conditions)
	}
	if r := meta.FindStatusCondition(n.Status.Conditions, v1alpha1.ConditionReady); r.Reason != v1alpha1.ReasonInterfacesMissing {
		t.Errorf("Ready is %+v", r)
	}
}

// TestFindNetworks fails if an IPPool triggers a network of which it cannot have addresses.
func TestFindNetworks(t *testing.T) {
	w := newTestController(t)
	if got := w.findNetworks(t.Context(), newIPPool("10.0.5.0")); len(got) != 1 || got[0] != "n4" {
		t.Errorf("10.0.5.0/24 wakes %v", got)
	}
	if got := w.findNetworks(t.Context(), newIPPool("10.0.6.0")); len(got) != 0 {
		t.Errorf("10.0.6.0/24 wakes %v", got)
	}
}
