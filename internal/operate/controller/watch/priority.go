package watch

import (
	"context"
	"slices"

	"golang.org/x/time/rate"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// The priorities of requests. Requests for changed declarations, new tenants among them, have priority 0.
const (
	// repairPriority is for objects that another client changed: a wall may be open.
	repairPriority = 20
	// CountedPriority is for tenants whose quota has been counted: people wait for access. Behind the first
	// reconciles of all other new tenants, they would wait for minutes.
	CountedPriority = 10
)

// repairsPerSecond and firstRepairs limit the requests with repairPriority. A controller that fights with croft
// over objects of many tenants must not keep it from everything else.
const (
	repairsPerSecond = 10
	firstRepairs     = 100
)

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// Enqueue adds a request with a priority. A queue without priorities ignores it.
func Enqueue(q queue, priority int, request reconcile.Request) {
	if prioritized, ok := q.(priorityqueue.PriorityQueue[reconcile.Request]); ok {
		prioritized.AddWithOpts(priorityqueue.AddOpts{Priority: &priority}, request)
		return
	}
	q.Add(request)
}

// Repairs enqueues the objects that mapTo returns for an object that another client changed or deleted, before all other
// requests. A write of croft itself, which isOwnWrite reports, needs no reconcile of the object's owner. Its former owner
// comes after all other requests.
func Repairs(mapTo handler.MapFunc, isOwnWrite func(client.Object) bool) handler.EventHandler {
	repairs := rate.NewLimiter(repairsPerSecond, firstRepairs)
	enqueueRepairs := func(q queue, requests []reconcile.Request) {
		priority := 0
		if repairs.Allow() {
			priority = repairPriority
		}
		for _, request := range requests {
			Enqueue(q, priority, request)
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) {
			if isOwnWrite(e.Object) {
				return
			}
			for _, request := range mapTo(ctx, e.Object) {
				q.Add(request) // at the start of croft, all objects are new
			}
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			before, after := mapTo(ctx, e.ObjectOld), mapTo(ctx, e.ObjectNew)
			if !isOwnWrite(e.ObjectNew) {
				enqueueRepairs(q, append(before, after...))
				return
			}
			for _, request := range before {
				if !slices.Contains(after, request) {
					Enqueue(q, handler.LowPriority, request)
				}
			}
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) {
			_ = isOwnWrite(e.Object) // nothing remembers a deleted object
			enqueueRepairs(q, mapTo(ctx, e.Object))
		},
	}
}
