// Package refusedpods counts, in the status of Tenants, the workloads whose pods the API
// server refuses. It has no state in memory: the count follows from the cached events.
package refusedpods

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/observe/refusals"
	"croft.dev/croft/internal/operate/controller/status"
	"croft.dev/croft/internal/operate/controller/watch"
	"croft.dev/croft/internal/operate/trace"
)

// pause is the time from a refusal until it is counted. Later refusals do not prolong it,
// so it is also the minimum time between two writes of a tenant's status.
const pause = 10 * time.Second

// Controller counts refused workloads. client reads from an indexed cache.
type Controller struct {
	client client.Client
	clock  clock.PassiveClock
	status *status.Writer
}

// New returns a Controller. cached is the manager's client.
func New(cached client.Client, clock clock.PassiveClock) *Controller {
	return &Controller{cached, clock, status.NewWriter(cached)}
}

// Events selects the events with the reason of refusals, and reduces them to the necessary
// fields. Tenants may write as many such events as etcd stores. Each costs the cache about
// a kilobyte until it expires.
func Events() cache.ByObject {
	return cache.ByObject{
		Label: labels.Everything(),
		Field: fields.OneTermEqualSelector("reason", refusals.Reason),
		Transform: func(o any) (any, error) {
			if e, ok := o.(*corev1.Event); ok {
				return refusals.TrimEvent(e), nil
			}
			return o, nil
		},
	}
}

// Register adds the controller to the manager. It handles one tenant at a time: no count is
// urgent, and a change of the platform may cause refusals in all tenants.
func (c *Controller) Register(_ context.Context, m manager.Manager) error {
	return builder.ControllerManagedBy(m).
		Named("refusedpods").
		WithOptions(controller.Options{MaxConcurrentReconciles: 1}).
		For(&v1alpha1.Tenant{}, builder.WithPredicates(newTenantPredicate())).
		Watches(&corev1.Event{}, c.newEventHandler()).
		Complete(trace.Reconciler("refusedpods", c))
}

// newTenantPredicate passes deletions, and tenants that had a count when the operator started: their
// events may have expired meanwhile.
func newTenantPredicate() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool {
			tenant, ok := e.Object.(*v1alpha1.Tenant)
			return ok && tenant.Status.RefusedPods != nil
		},
		UpdateFunc:  func(event.UpdateEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}

type requests = workqueue.TypedRateLimitingInterface[reconcile.Request]

// newEventHandler reconciles a tenant soon after a refusal. The expiry of events needs no watch,
// because a refusal stops counting earlier.
func (c *Controller) newEventHandler() handler.EventHandler {
	soon := func(ctx context.Context, o client.Object, queue requests) {
		e, ok := o.(*corev1.Event)
		if !ok || !refusals.IsGenuine(e) {
			return
		}
		namespace := &corev1.Namespace{}
		if err := c.client.Get(ctx, client.ObjectKey{Name: e.Namespace}, namespace); err != nil {
			return
		}
		for _, request := range watch.MakeRequests(namespace.Labels[v1alpha1.TenantLabel]) {
			queue.AddAfter(request, pause)
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, queue requests) { soon(ctx, e.Object, queue) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, queue requests) { soon(ctx, e.ObjectNew, queue) },
	}
}

// Reconcile implements reconcile.Reconciler.
func (c *Controller) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	tenant := &v1alpha1.Tenant{}
	if err := c.client.Get(ctx, req.NamespacedName, tenant); err != nil {
		if apierrors.IsNotFound(err) {
			c.status.Forget(req.Name)
		}
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	now := c.clock.Now()
	refused, err := c.listRefused(ctx, req.Name, now)
	if err != nil {
		return reconcile.Result{}, err
	}
	before := tenant.DeepCopy()
	tenant.Status.RefusedPods = nil
	var result reconcile.Result
	if len(refused) > 0 {
		tenant.Status.RefusedPods = &v1alpha1.RefusedPods{Workloads: int64(len(refused)), First: refused[0].RefusedWorkload}
		result.RequeueAfter = max(getNextExpiry(refused).Sub(now), pause)
	}
	err = c.status.Patch(ctx, before, tenant)
	if apierrors.IsConflict(err) {
		// The cache does not have the last count yet.
		return reconcile.Result{RequeueAfter: pause}, nil
	}
	return result, err
}

// listRefused returns the refused workloads in a tenant's namespaces.
func (c *Controller) listRefused(ctx context.Context, tenant string, now time.Time) ([]refusals.Workload, error) {
	var namespaces corev1.NamespaceList
	if err := c.client.List(ctx, &namespaces, client.MatchingFields{watch.NamespacesByTenant: tenant}); err != nil {
		return nil, fmt.Errorf("list namespaces of tenant %s: %w", tenant, err)
	}
	var all []corev1.Event
	for i := range namespaces.Items {
		var events corev1.EventList
		if err := c.client.List(ctx, &events, client.InNamespace(namespaces.Items[i].Name), client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("list events in namespace %s: %w", namespaces.Items[i].Name, err)
		}
		all = append(all, events.Items...)
	}
	return refusals.Workloads(all, now), nil
}

// getNextExpiry returns when the first of these workloads stops counting.
func getNextExpiry(refused []refusals.Workload) time.Time {
	earliest := refused[0].Until
	for _, w := range refused {
		if w.Until.Before(earliest) {
			earliest = w.Until
		}
	}
	return earliest
}
