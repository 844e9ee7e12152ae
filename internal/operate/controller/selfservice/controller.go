// Package selfservice grants the namespaces that tenants request. It decides on one request
// after the other and creates the namespaces. From then on, package tenant maintains their
// walls, as for declared namespaces.
package selfservice

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/operate/apply"
	"croft.dev/croft/internal/operate/controller/declared"
	"croft.dev/croft/internal/operate/controller/event"
	"croft.dev/croft/internal/operate/controller/status"
	"croft.dev/croft/internal/operate/controller/watch"
	"croft.dev/croft/internal/operate/trace"
)

// again is the time until a refused request is evaluated again: its obstacle may disappear
// without an event of the tenant.
const again = time.Minute

// Controller reconciles TenantNamespaces.
type Controller struct {
	client client.Client
	// live reads from the API server, because the cache may be too old to grant a request.
	live     client.Client
	applier  *apply.Applier
	declared *declared.Store
	recorder events.EventRecorder
	clock    clock.PassiveClock
}

// New returns a Controller. cached is the manager's client.
func New(cached, live client.Client, d *declared.Store, r events.EventRecorder, clock clock.PassiveClock) *Controller {
	return &Controller{cached, live, apply.New(live), d, r, clock}
}

// Register adds the controller to the manager. It handles one request at a time: to enforce
// the limit, each grant must be counted before the next decision.
func (c *Controller) Register(_ context.Context, m manager.Manager) error {
	return builder.ControllerManagedBy(m).
		Named("selfservice").
		WithOptions(controller.Options{MaxConcurrentReconciles: 1}).
		For(&v1alpha1.TenantNamespace{}).
		Watches(&v1alpha1.Tenant{}, handler.EnqueueRequestsFromMapFunc(c.listRequests), builder.WithPredicates(newTenantPredicate())).
		Watches(&corev1.Namespace{}, handler.EnqueueRequestsFromMapFunc(c.listRequests), builder.WithPredicates(watch.Deleted())).
		Complete(trace.Reconciler("selfservice", c))
}

// Reconcile implements reconcile.Reconciler.
func (c *Controller) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	request := &v1alpha1.TenantNamespace{}
	if err := c.live.Get(ctx, req.NamespacedName, request); err != nil || !request.DeletionTimestamp.IsZero() {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	snapshot := c.declared.Current()
	if snapshot == nil {
		return reconcile.Result{RequeueAfter: time.Second}, nil
	}
	entry, _ := snapshot.Tenant(snapshot.Claimant(request.Namespace))
	tenant := entry.Value
	switch {
	case tenant == nil:
		return reconcile.Result{RequeueAfter: again}, c.writeDecision(ctx, request, "", v1alpha1.ReasonPending,
			"no valid Tenant declares namespace "+request.Namespace)
	case request.Status.Tenant == tenant.Name:
		return c.reportNamespace(ctx, request, tenant)
	case request.Status.Tenant != "":
		return reconcile.Result{}, c.writeDecision(ctx, request, request.Status.Tenant, v1alpha1.ReasonNotAllowed,
			"granted to a tenant that does not declare "+request.Namespace+" any more: delete this request, and create it again")
	}
	if until := request.Spec.Until; until != nil && !c.clock.Now().Before(until.Time) {
		return reconcile.Result{}, c.writeDecision(ctx, request, "", v1alpha1.ReasonNotAllowed,
			"spec.until: the end has passed: write a later time")
	}
	f, err := c.readFacts(ctx, snapshot, tenant, request)
	if err != nil {
		return reconcile.Result{}, err
	}
	if reason, why := decideRequest(f); reason != "" {
		return reconcile.Result{RequeueAfter: again}, c.writeDecision(ctx, request, "", reason, why)
	}
	return reconcile.Result{}, c.grantRequest(ctx, request, tenant, f.existing != nil)
}

// grantRequest records the grant, and creates the namespace before the next decision. If another
// client creates the namespace in between, grant withdraws the grant, because requests do
// not adopt namespaces.
func (c *Controller) grantRequest(ctx context.Context, request *v1alpha1.TenantNamespace, tenant *estate.Tenant, exists bool) error {
	end, _ := findEnd(request, tenant.MaxLifetime, c.clock.Now())
	before := request.DeepCopy()
	request.Status.Tenant, request.Status.Until = tenant.Name, toTime(end)
	status.Set(&request.Status.Status, request.Generation, v1alpha1.ConditionAccepted, metav1.ConditionTrue, v1alpha1.ReasonAccepted, "")
	if err := c.writeStatus(ctx, before, request); err != nil || exists {
		return err
	}
	err := c.applier.CreateNamespace(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name:        request.Name,
		Labels:      map[string]string{v1alpha1.TenantLabel: tenant.Name},
		Annotations: map[string]string{v1alpha1.RequestedAnnotation: request.Namespace},
	}})
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	existing := &corev1.Namespace{}
	if err := c.live.Get(ctx, client.ObjectKey{Name: request.Name}, existing); err != nil {
		return err
	}
	if (facts{anchor: request.Namespace, tenant: tenant, existing: existing}).isRetained() {
		return nil // package tenant was faster
	}
	return c.writeDecision(ctx, request, "", v1alpha1.ReasonNameTaken, "a namespace "+request.Name+" was created meanwhile: choose another name")
}

// reportNamespace reports whether a granted namespace is ready.
func (c *Controller) reportNamespace(ctx context.Context, request *v1alpha1.TenantNamespace, tenant *estate.Tenant) (reconcile.Result, error) {
	object := &v1alpha1.Tenant{}
	if err := c.client.Get(ctx, client.ObjectKey{Name: tenant.Name}, object); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	now := c.clock.Now()
	end, limited := findEnd(request, tenant.MaxLifetime, now)
	if tenant.Declares(request.Name) {
		end, limited = time.Time{}, false // the Tenant has taken it over, and it stays
	}
	if !end.IsZero() && !now.Before(end) {
		return reconcile.Result{}, c.endNamespace(ctx, request, tenant)
	}
	before := request.DeepCopy()
	st := &request.Status.Status
	request.Status.Until = toTime(end)
	accepted := estate.ExplainIgnoredLabels(tenant, request.Labels)
	if limited {
		accepted = strings.TrimPrefix(accepted+"; "+explainLimit(end), "; ")
	}
	status.Set(st, request.Generation, v1alpha1.ConditionAccepted, metav1.ConditionTrue, v1alpha1.ReasonAccepted, accepted)
	setEnding(request, end, now)
	if slices.Contains(object.Status.Namespaces, request.Name) && meta.IsStatusConditionTrue(object.Status.Conditions, v1alpha1.ConditionReady) {
		status.Set(st, request.Generation, v1alpha1.ConditionApplied, metav1.ConditionTrue, v1alpha1.ReasonApplied, "")
	} else {
		// The Tenant's own message is for the platform team, because it may name other
		// tenants.
		status.Set(st, request.Generation, v1alpha1.ConditionApplied, metav1.ConditionFalse, v1alpha1.ReasonPending,
			"granted; the walls of tenant "+tenant.Name+" do not protect it yet")
	}
	return reconcile.Result{RequeueAfter: findNextStep(end, now)}, c.writeStatus(ctx, before, request)
}

// writeDecision writes the reason why a request is not granted. tenant is the tenant to which it was
// granted earlier, or "".
func (c *Controller) writeDecision(ctx context.Context, request *v1alpha1.TenantNamespace, tenant, reason, why string) error {
	before := request.DeepCopy()
	request.Status.Tenant = tenant
	status.Set(&request.Status.Status, request.Generation, v1alpha1.ConditionAccepted, metav1.ConditionFalse, reason, why)
	return c.writeStatus(ctx, before, request)
}

// writeStatus writes the status if the request has not changed since the decision, and emits an
// event if the decision is new.
func (c *Controller) writeStatus(ctx context.Context, before, request *v1alpha1.TenantNamespace) error {
	status.SetReady(&request.Status.Status, request.Generation, v1alpha1.ConditionAccepted, v1alpha1.ConditionApplied)
	status.SetProgress(&request.Status.Status, request.Generation, false)
	if equality.Semantic.DeepEqual(before.Status, request.Status) {
		return nil
	}
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := c.live.Status().Patch(ctx, request, patch); err != nil {
		return client.IgnoreNotFound(err)
	}
	if turned := status.FindChanged(&before.Status.Status, &request.Status.Status, v1alpha1.ConditionReady); turned != nil {
		note := fmt.Sprintf("namespace %s: %s %s", request.Name, turned.Reason, turned.Message)
		event.Emit(c.recorder, request, corev1.EventTypeNormal, turned.Reason, "Request", strings.TrimSpace(note))
		log.FromContext(ctx).Info("decided on a request for a namespace", "tenant", request.Status.Tenant, "generation", request.Generation,
			"ready", string(turned.Status), "reason", turned.Reason, "message", turned.Message)
	}
	if ending := meta.FindStatusCondition(request.Status.Conditions, v1alpha1.ConditionEnding); ending != nil {
		was := meta.FindStatusCondition(before.Status.Conditions, v1alpha1.ConditionEnding)
		if was == nil || was.Reason != ending.Reason {
			event.Emit(c.recorder, request, corev1.EventTypeWarning, ending.Reason, "Request", ending.Message)
		}
	}
	return nil
}
