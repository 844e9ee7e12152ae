package refusedpods

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/scheme"
	"croft.dev/croft/internal/operate/controller/watch"
)

func newRefusedEvent(namespace, workload, component string, ago time.Duration) *corev1.Event {
	return &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: namespace, Name: workload},
		InvolvedObject: corev1.ObjectReference{Kind: "Job", Name: workload, UID: types.UID(namespace + workload)},
		Reason:         "FailedCreate", Source: corev1.EventSource{Component: component},
		LastTimestamp: metav1.NewTime(now.Add(-ago)), Message: `Error creating: pods "a" is forbidden: no`,
	}
}

// now is the time of the controller's clock.
var now = time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)

// TestReconcile checks a tenant's count, and how often its status is written.
func TestReconcile(t *testing.T) {
	namespace := func(name, tenant string) client.Object {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{v1alpha1.TenantLabel: tenant}}}
	}
	writes := 0
	c := fake.NewClientBuilder().WithScheme(scheme.New()).WithStatusSubresource(&v1alpha1.Tenant{}).
		WithObjects(namespace("shop-a", "shop"), namespace("shop-b", "shop"), namespace("bank", "bank"), &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}).
		WithIndex(&corev1.Namespace{}, watch.NamespacesByTenant, func(o client.Object) []string { return []string{o.GetLabels()[v1alpha1.TenantLabel]} }).
		WithInterceptorFuncs(interceptor.Funcs{SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			writes++
			return c.SubResource(sub).Patch(ctx, o, p, opts...)
		}}).Build()
	reconciler := New(c, clocktesting.NewFakePassiveClock(now))
	for _, step := range []struct {
		name   string
		events []*corev1.Event
		want   string
		writes int
		again  bool
	}{
		{"nothing is refused", nil, "0", 0, false},
		{"forged, and another tenant's", []*corev1.Event{newRefusedEvent("shop-a", "a", "web", 0), newRefusedEvent("bank", "a", "job-controller", 0)}, "0", 0, false},
		{"two namespaces", []*corev1.Event{newRefusedEvent("shop-a", "a", "job-controller", time.Second), newRefusedEvent("shop-b", "a", "job-controller", 2*time.Second)}, "2, Job shop-b/a: no", 1, true},
		{"unchanged", []*corev1.Event{newRefusedEvent("shop-a", "a", "job-controller", 0), newRefusedEvent("shop-b", "a", "job-controller", time.Second)}, "2, Job shop-b/a: no", 0, true},
		{"one is left", []*corev1.Event{newRefusedEvent("shop-a", "a", "job-controller", 0), newRefusedEvent("shop-b", "a", "job-controller", time.Hour)}, "1, Job shop-a/a: no", 1, true},
		{"none is left", nil, "0", 1, false},
	} {
		t.Run(step.name, func(t *testing.T) {
			for _, n := range []string{"shop-a", "shop-b", "bank"} {
				if err := c.DeleteAllOf(t.Context(), &corev1.Event{}, client.InNamespace(n)); err != nil {
					t.Fatal(err)
				}
			}
			for _, e := range step.events {
				if err := c.Create(t.Context(), e); err != nil {
					t.Fatal(err)
				}
			}
			writes = 0
			result, err := reconciler.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "shop"}})
			if err != nil {
				t.Fatal(err)
			}
			tenant := &v1alpha1.Tenant{}
			if err := c.Get(t.Context(), client.ObjectKey{Name: "shop"}, tenant); err != nil {
				t.Fatal(err)
			}
			got := "0"
			if r := tenant.Status.RefusedPods; r != nil {
				got = fmt.Sprintf("%d, %s %s/%s: %s", r.Workloads, r.First.Kind, r.First.Namespace, r.First.Name, r.First.Message)
			}
			if got != step.want || writes != step.writes {
				t.Errorf("%s with %d writes; want %s with %d", got, writes, step.want, step.writes)
			}
			if again := result.RequeueAfter >= pause; again != step.again || result.RequeueAfter > 20*time.Minute {
				t.Errorf("it is reconciled again after %s", result.RequeueAfter)
			}
		})
	}
}
