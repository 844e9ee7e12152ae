package quota

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/share"
)

// pause is how long use is left to settle before it is looked at. A burst of pods
// is one look, and what was let in last has had the time to be counted.
const pause = 500 * time.Millisecond

// Handler asks for a tenant when the status of one of its ResourceQuotas says
// something that matters: what was taken away is in force, or a namespace has run
// short. That something was created in it does not.
func (q *Quota) Handler() handler.EventHandler {
	return handler.Funcs{UpdateFunc: func(ctx context.Context, e event.UpdateEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		before, ok := e.ObjectOld.(*corev1.ResourceQuota)
		after, ok2 := e.ObjectNew.(*corev1.ResourceQuota)
		name := e.ObjectNew.GetLabels()[v1alpha1.TenantLabel]
		if !ok || !ok2 || name == "" {
			return
		}
		request := reconcile.Request{NamespacedName: types.NamespacedName{Name: name}}
		switch {
		case len(before.Status.Hard) == 0 && len(after.Status.Hard) > 0:
			queue.Add(request)
		case !q.isSharing(name) || share.Same(before.Status.Hard, after.Status.Hard) && share.Same(before.Status.Used, after.Status.Used):
		case !share.Same(before.Status.Hard, after.Status.Hard):
			queue.Add(request)
		case q.expect(name, true):
			time.AfterFunc(pause, func() {
				q.expect(name, false)
				if q.unsettled(ctx, name) {
					queue.Add(request)
				}
			})
		}
	}}
}

func (q *Quota) isSharing(tenant string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.sharing[tenant] != nil
}

// expect notes whether a look at a tenant is to come, and reports whether that is
// new.
func (q *Quota) expect(tenant string, look bool) bool {
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

// unsettled reports whether a tenant's quota would be divided otherwise by now.
func (q *Quota) unsettled(ctx context.Context, name string) bool {
	q.mu.Lock()
	tenant := q.sharing[name]
	q.mu.Unlock()
	object := &v1alpha1.Tenant{}
	if tenant == nil || q.cached.Get(ctx, types.NamespacedName{Name: name}, object) != nil {
		return false
	}
	names, err := q.members(ctx, object, tenant)
	if err != nil {
		return false
	}
	seen, err := observe(ctx, q.cached, object, tenant, names)
	return err == nil && !seen.settled()
}
