// Package elevation grants requests for elevation, and deletes their objects when they end.
// The end of an elevation does not depend on this controller: the API server rejects an
// expired token.
package elevation

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
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
	"croft.dev/croft/internal/operate/controller/watch"
	"croft.dev/croft/internal/operate/trace"
	"croft.dev/croft/internal/walls/elevation"
)

// Controller reconciles Elevations.
type Controller struct {
	client client.Client
	// live reads from the API server, so that an elevation is granted only once.
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

// Register adds the controller to the manager. At the operator's start, the controller also
// checks RoleBindings whose elevation was deleted or changed. It handles one request at a
// time, so that each decision counts all earlier ones.
func (c *Controller) Register(_ context.Context, m manager.Manager) error {
	return builder.ControllerManagedBy(m).
		Named("elevation").
		WithOptions(controller.Options{MaxConcurrentReconciles: 1}).
		For(&v1alpha1.Elevation{}).
		Watches(&rbacv1.RoleBinding{}, handler.EnqueueRequestsFromMapFunc(mapToElevation), builder.WithPredicates(watch.Drift())).
		Complete(trace.Reconciler("elevation", c))
}

// mapToElevation returns the elevation of a RoleBinding.
func mapToElevation(_ context.Context, o client.Object) []reconcile.Request {
	namespace, name, ok := strings.Cut(o.GetAnnotations()[v1alpha1.ElevationLabel], "/")
	if !ok {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: namespace, Name: name}}}
}

// Reconcile implements reconcile.Reconciler.
func (c *Controller) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	e := &v1alpha1.Elevation{}
	account := elevation.Name(req.Namespace, req.Name)
	if err := c.live.Get(ctx, req.NamespacedName, e); client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, err
	} else if err != nil {
		return reconcile.Result{}, c.withdrawAccess(ctx, account)
	}
	now := c.clock.Now()
	if !now.Before(computeExpiry(e)) {
		return reconcile.Result{}, c.deleteRecord(ctx, e, account)
	}
	if e.Status.Phase != "" && e.Status.Phase != v1alpha1.ElevationPending {
		// The generation changes if somebody approves a request that needs no approval.
		if err := c.writeDecision(ctx, e, e.Status); err != nil {
			return reconcile.Result{}, err
		}
	}
	switch e.Status.Phase {
	case v1alpha1.ElevationEnded, v1alpha1.ElevationRefused:
		if bindings, err := c.listBindings(ctx, account); err != nil || len(bindings) == 0 {
			return reconcile.Result{RequeueAfter: computeExpiry(e).Sub(now)}, err
		}
		return reconcile.Result{RequeueAfter: computeExpiry(e).Sub(now)}, c.withdrawAccess(ctx, account)
	case v1alpha1.ElevationPending:
	case v1alpha1.ElevationActive:
		if now.Before(e.Status.Until.Time) {
			break
		}
		return reconcile.Result{}, c.endElevation(ctx, e, account, "its duration has passed")
	}
	platform, tenant := c.findTenant(e.Namespace)
	if tenant == nil {
		// The tenant is invalid, or not yet declared. Nothing is granted or ended early.
		return reconcile.Result{RequeueAfter: computeRequeueDelay(e, now)}, nil
	}
	if e.Status.Phase == v1alpha1.ElevationActive {
		if platform.Elevation == nil {
			return reconcile.Result{}, c.endElevation(ctx, e, account, "platform.elevation was removed")
		}
		_, err := c.applier.Apply(ctx, elevation.Bindings(e, tenant.Namespaces)...)
		return reconcile.Result{RequeueAfter: computeRequeueDelay(e, now)}, err
	}
	if e.Status.Phase == "" {
		if others, err := c.countDecided(ctx, e.Spec.RequestedBy, tenant.Namespaces); err != nil {
			return reconcile.Result{}, err
		} else if room := estate.MaxElevationsPerPerson(tenant); others >= room {
			return reconcile.Result{}, c.dropRequest(ctx, e, fmt.Sprintf("deleted: a person may have at most %d elevations within 30 days in tenant %s", room, tenant.Name))
		}
	}
	verdict, why := decideRequest(e, platform, now)
	if verdict != v1alpha1.ElevationActive {
		return reconcile.Result{RequeueAfter: computeRequeueDelay(e, now)}, c.writeDecision(ctx, e, v1alpha1.ElevationStatus{Phase: verdict, Message: why})
	}
	return reconcile.Result{}, c.grantElevation(ctx, e, account)
}

// findTenant returns the valid tenant that a namespace belongs to, or nil.
func (c *Controller) findTenant(namespace string) (*estate.Platform, *estate.Tenant) {
	snapshot := c.declared.Current()
	if snapshot == nil || snapshot.Platform == nil {
		return nil, nil
	}
	entry, _ := snapshot.Tenant(snapshot.Claimant(namespace))
	return snapshot.Platform, entry.Value
}

// computeRequeueDelay returns the time until the next reconcile of an elevation: its end, or a minute if
// that is earlier, because the Platform may change.
func computeRequeueDelay(e *v1alpha1.Elevation, now time.Time) time.Duration {
	if e.Status.Until == nil {
		return time.Minute
	}
	return min(time.Minute, e.Status.Until.Sub(now))
}

// grantElevation issues the token, and records it before it creates any binding. If recording fails,
// no user has the token, and the next try issues another one.
func (c *Controller) grantElevation(ctx context.Context, e *v1alpha1.Elevation, account string) error {
	if _, err := c.applier.Apply(ctx, elevation.Account(account)); err != nil {
		return err
	}
	lifetime := e.Spec.Duration.Duration - elevation.Leeway
	now := c.clock.Now()
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To(int64(lifetime.Seconds()))}}
	if err := c.live.SubResource("token").Create(ctx, elevation.Account(account), request); err != nil {
		return fmt.Errorf("request a token: %w", err)
	}
	until := request.Status.ExpirationTimestamp.Add(elevation.Leeway)
	if until.After(now.Add(e.Spec.Duration.Duration + elevation.Leeway)) {
		return c.refuseRequest(ctx, e, account, "the API server issues tokens that are valid for longer than requested, until "+until.UTC().Format(time.RFC3339))
	}
	sealed, err := elevation.Seal(e.Spec.PublicKey, request.Status.Token)
	if err != nil {
		return c.refuseRequest(ctx, e, account, "spec.publicKey is not an X25519 key")
	}
	by := "without approval, as the platform allows"
	if e.Spec.ApprovedBy != "" {
		by = "approved by " + e.Spec.ApprovedBy
	}
	return c.writeDecision(ctx, e, v1alpha1.ElevationStatus{
		Phase: v1alpha1.ElevationActive, Message: by, Granted: ptr.To(metav1.NewTime(now)), Until: ptr.To(metav1.NewTime(until)),
		User: serviceaccount.MakeUsername(v1alpha1.ElevationsNamespace, account), Token: sealed,
	})
}

// countDecided counts one person's requests in a tenant, as the cache has them. It excludes
// new requests, which have no phase yet.
func (c *Controller) countDecided(ctx context.Context, person string, namespaces []string) (int, error) {
	count := 0
	for _, namespace := range namespaces {
		var list v1alpha1.ElevationList
		if err := c.client.List(ctx, &list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
			return 0, err
		}
		for i := range list.Items {
			if e := &list.Items[i]; e.Spec.RequestedBy == person && e.Status.Phase != "" {
				count++
			}
		}
	}
	return count, nil
}

// dropRequest deletes an undecided request. Its event remains.
func (c *Controller) dropRequest(ctx context.Context, e *v1alpha1.Elevation, why string) error {
	event.Emit(c.recorder, e, corev1.EventTypeWarning, "ElevationRefused", "elevate", e.Spec.RequestedBy+": "+why)
	return c.deleteElevation(ctx, e)
}

// deleteRecord deletes the record of an elevation, after any objects that remain.
func (c *Controller) deleteRecord(ctx context.Context, e *v1alpha1.Elevation, account string) error {
	if err := c.withdrawAccess(ctx, account); err != nil {
		return err
	}
	return c.deleteElevation(ctx, e)
}

// deleteElevation deletes an elevation, but not a later one with the same name.
func (c *Controller) deleteElevation(ctx context.Context, e *v1alpha1.Elevation) error {
	return client.IgnoreNotFound(c.live.Delete(ctx, e, client.Preconditions{UID: &e.UID}))
}

// refuseRequest deletes the objects of a request that cannot be granted, and records the reason.
func (c *Controller) refuseRequest(ctx context.Context, e *v1alpha1.Elevation, account, why string) error {
	return errors.Join(c.withdrawAccess(ctx, account), c.writeDecision(ctx, e, v1alpha1.ElevationStatus{Phase: v1alpha1.ElevationRefused, Message: why}))
}

// endElevation deletes an elevation's objects, and then updates its status.
func (c *Controller) endElevation(ctx context.Context, e *v1alpha1.Elevation, account, why string) error {
	if err := c.withdrawAccess(ctx, account); err != nil {
		return err
	}
	next := e.Status
	next.Phase, next.Message, next.Token = v1alpha1.ElevationEnded, why, nil
	return c.writeDecision(ctx, e, next)
}

// listBindings returns the RoleBindings of an elevation, as the cache has them.
func (c *Controller) listBindings(ctx context.Context, account string) ([]rbacv1.RoleBinding, error) {
	var list rbacv1.RoleBindingList
	err := c.client.List(ctx, &list, client.MatchingLabels{v1alpha1.ElevationLabel: account})
	return list.Items, err
}

// withdrawAccess deletes the service account first. From then on its tokens are rejected.
func (c *Controller) withdrawAccess(ctx context.Context, account string) error {
	bindings, err := c.listBindings(ctx, account)
	if err != nil {
		return err
	}
	revoked := []client.Object{elevation.Account(account)}
	for i := range bindings {
		revoked = append(revoked, &bindings[i])
	}
	return c.applier.Delete(ctx, revoked...)
}

// writeDecision writes the status with its conditions if the elevation has not changed since
// the decision. It emits an event if the decision is new.
func (c *Controller) writeDecision(ctx context.Context, e *v1alpha1.Elevation, next v1alpha1.ElevationStatus) error {
	next.Status = *e.Status.Status.DeepCopy()
	setConditions(&next, e.Generation)
	if equality.Semantic.DeepEqual(e.Status, next) {
		return nil
	}
	before := e.DeepCopy()
	e.Status = next
	if err := c.live.Status().Patch(ctx, e, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return err
	}
	if before.Status.Phase == next.Phase && before.Status.Message == next.Message {
		return nil
	}
	event.Emit(c.recorder, e, corev1.EventTypeNormal, "Elevation"+string(next.Phase), "elevate",
		fmt.Sprintf("%s as %s for %s: %s (%s)", e.Spec.RequestedBy, e.Spec.Role, e.Spec.Duration.Duration, next.Message, e.Spec.Reason))
	log.FromContext(ctx).Info("decided on an elevation", "generation", e.Generation, "phase", string(next.Phase), "message", next.Message,
		"by", e.Spec.RequestedBy, "role", string(e.Spec.Role), "for", e.Spec.Duration.Duration.String())
	return nil
}
