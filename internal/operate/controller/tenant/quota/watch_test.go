package quota

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"croft.dev/croft/api/v1alpha1"
)

// TestCountedQuotas counts the quota of a tenant while other new tenants wait. It must be reconciled
// before them, because its people wait for access.
func TestCountedQuotas(t *testing.T) {
	queue := priorityqueue.New[reconcile.Request]("test")
	defer queue.ShutDown()
	newRequest := func(name string) reconcile.Request {
		return reconcile.Request{NamespacedName: types.NamespacedName{Name: name}}
	}
	queue.Add(newRequest("first"))
	queue.Add(newRequest("second"))
	before := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "1", Labels: map[string]string{v1alpha1.TenantLabel: "shop"}}}
	after := before.DeepCopy()
	after.ResourceVersion = "2"
	after.Status.Hard = corev1.ResourceList{corev1.ResourcePods: resource.MustParse("5")}
	New(nil, nil, clock.RealClock{}).Handler().Update(t.Context(), event.UpdateEvent{ObjectOld: before, ObjectNew: after}, queue)
	if request, _ := queue.Get(); request.Name != "shop" {
		t.Errorf("%s is reconciled before the tenant whose quota was counted", request.Name)
	}
}
