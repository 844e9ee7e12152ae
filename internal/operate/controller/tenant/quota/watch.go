package quota

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/quotaplan"
	"croft.dev/croft/internal/operate/controller/watch"
)

// pause is the time for use to settle before it is evaluated. A burst of pods is evaluated
// once, when all of them have been counted.
const pause = 500 * time.Millisecond

// Handler reconciles a tenant when the status of one of its ResourceQuotas changes
// relevantly: a lowered share is in force, or a namespace runs short. Ordinary use is
// irrelevant.
func (q *Quota) Handler() handler.EventHandler {
	return handler.Funcs{UpdateFunc: func(ctx context.Context, e event.UpdateEvent, queue requests) {
		before, ok := e.ObjectOld.(*corev1.ResourceQuota)
		after, ok2 := e.ObjectNew.(*corev1.ResourceQuota)
		name := e.ObjectNew.GetLabels()[v1alpha1.TenantLabel]
		if !ok || !ok2 || name == "" {
			return
		}
		request := reconcile.Request{NamespacedName: types.NamespacedName{Name: name}}
		switch {
		case len(before.Status.Hard) == 0 && len(after.Status.Hard) > 0:
			watch.Enqueue(queue, watch.CountedPriority, request)
		case !q.isSharing(name) || quotaplan.IsEqual(before.Status.Hard, after.Status.Hard) && quotaplan.IsEqual(before.Status.Used, after.Status.Used):
		case !quotaplan.IsEqual(before.Status.Hard, after.Status.Hard):
			watch.Enqueue(queue, watch.CountedPriority, request)
		default:
			q.scheduleEvaluation(ctx, queue, name)
		}
	}}
}

type requests = workqueue.TypedRateLimitingInterface[reconcile.Request]

// scheduleEvaluation evaluates a tenant after a pause, unless that is already scheduled.
func (q *Quota) scheduleEvaluation(ctx context.Context, queue requests, name string) {
	if q.setScheduled(name, true) {
		q.clock.AfterFunc(pause, func() {
			q.setScheduled(name, false)
			if q.needsDivision(ctx, name) {
				queue.Add(reconcile.Request{NamespacedName: types.NamespacedName{Name: name}})
			}
		})
	}
}

// RefusalHandler evaluates a tenant when its quota has refused an object, and again when the
// refusal no longer counts.
func (q *Quota) RefusalHandler() handler.EventHandler {
	note := func(ctx context.Context, o client.Object, queue requests) {
		e, ok := o.(*corev1.Event)
		if !ok || e.Message == "" {
			return
		}
		look := func() {
			if tenant := q.findSharer(e.Namespace); tenant != "" {
				q.scheduleEvaluation(ctx, queue, tenant)
			}
		}
		if q.recordRefusal(e, look) {
			look()
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, queue requests) { note(ctx, e.Object, queue) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, queue requests) { note(ctx, e.ObjectNew, queue) },
	}
}

// findSharer returns the tenant to which a namespace belongs if it has several, or "".
func (q *Quota) findSharer(namespace string) string {
	q.mu.Lock()
	defer q.mu.Unlock()
	for name, tenant := range q.sharing {
		if slices.Contains(tenant.Namespaces, namespace) {
			return name
		}
	}
	return ""
}

func (q *Quota) isSharing(tenant string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.sharing[tenant] != nil
}

// setScheduled records whether an evaluation of a tenant is scheduled, and reports whether that
// has changed.
func (q *Quota) setScheduled(tenant string, look bool) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	was := q.expected[tenant]
	if look {
		q.expected[tenant] = true
	} else {
		delete(q.expected, tenant)
	}
	return was != look
}

// needsDivision reports whether a tenant's quota would be divided differently now.
func (q *Quota) needsDivision(ctx context.Context, name string) bool {
	q.mu.Lock()
	tenant := q.sharing[name]
	q.mu.Unlock()
	object := &v1alpha1.Tenant{}
	if tenant == nil || q.cached.Get(ctx, types.NamespacedName{Name: name}, object) != nil {
		return false
	}
	names, err := q.listMembers(ctx, object, tenant)
	if err != nil {
		return false
	}
	seen, err := q.observeQuotas(ctx, q.cached, object, tenant, names)
	return err == nil && !seen.isSettled()
}
