package watch

import (
	"fmt"
	"slices"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// newPolicy returns a NetworkPolicy of a tenant.
func newPolicy(tenant, version string) *networkingv1.NetworkPolicy {
	return &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{ResourceVersion: version, Labels: map[string]string{"tenant": tenant}}}
}

// takeNames takes requests from a queue, and returns their names.
func takeNames(q priorityqueue.PriorityQueue[reconcile.Request], count int) []string {
	var names []string
	for range count {
		request, _ := q.Get()
		names = append(names, request.Name)
	}
	return names
}

// TestPriorities enqueues many new tenants, and then events of other tenants.
func TestPriorities(t *testing.T) {
	q := priorityqueue.New[reconcile.Request]("test")
	defer q.ShutDown()
	var want []string
	for i := range 50 {
		name := fmt.Sprintf("new-%d", i)
		q.Add(MakeRequests(name)[0])
		want = append(want, name)
	}
	repairs := Repairs(MapByLabel("tenant"), func(o client.Object) bool { return o.GetResourceVersion() == "croft" })
	repairs.Update(t.Context(), event.UpdateEvent{ObjectOld: newPolicy("own", "1"), ObjectNew: newPolicy("own", "croft")}, q)
	repairs.Create(t.Context(), event.CreateEvent{Object: newPolicy("own", "croft")}, q)
	repairs.Update(t.Context(), event.UpdateEvent{ObjectOld: newPolicy("former", "1"), ObjectNew: newPolicy("own", "croft")}, q)
	repairs.Create(t.Context(), event.CreateEvent{Object: newPolicy("created", "1")}, q)
	Enqueue(q, CountedPriority, MakeRequests("counted")[0])
	Enqueue(q, CountedPriority, MakeRequests("new-40")[0])
	repairs.Update(t.Context(), event.UpdateEvent{ObjectOld: newPolicy("lost", "1"), ObjectNew: newPolicy("changed", "2")}, q)
	repairs.Delete(t.Context(), event.DeleteEvent{Object: newPolicy("deleted", "croft")}, q)
	// At the start, the cache reports all objects.
	repairs.Create(t.Context(), event.CreateEvent{Object: newPolicy("cached", "1"), IsInInitialList: true}, q)

	want = slices.Concat([]string{"lost", "changed", "deleted", "counted", "new-40"}, slices.Delete(want, 40, 41), []string{"created", "former", "cached"})
	if got := takeNames(q, len(want)); !slices.Equal(got, want) {
		t.Errorf("the order is %v, want %v", got, want)
	}
}

// TestRepairsAreLimited fails if a controller that changes objects of all tenants can keep new tenants
// waiting for ever.
func TestRepairsAreLimited(t *testing.T) {
	q := priorityqueue.New[reconcile.Request]("test")
	defer q.ShutDown()
	q.Add(MakeRequests("new")[0])
	repairs := Repairs(MapByLabel("tenant"), func(client.Object) bool { return false })
	const count = 10 * firstRepairs
	for i := range count {
		name := fmt.Sprintf("tenant-%d", i)
		repairs.Update(t.Context(), event.UpdateEvent{ObjectOld: newPolicy(name, "1"), ObjectNew: newPolicy(name, "2")}, q)
	}
	if at := slices.Index(takeNames(q, count), "new"); at < firstRepairs || at > count/2 {
		t.Errorf("%d tenants are reconciled before a new one", at)
	}
}
