// Package tenant applies the walls of each tenant, and reports their state in the tenant's
// status and in events. All concerns share one queue, so that nothing is written for a
// tenant while it is deleted. The two concerns with their own state, quota and enforcement,
// have packages of their own.
package tenant

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/operate/apply"
	"croft.dev/croft/internal/operate/controller/decision"
	"croft.dev/croft/internal/operate/controller/declared"
	"croft.dev/croft/internal/operate/controller/outcome"
	"croft.dev/croft/internal/operate/controller/repair"
	"croft.dev/croft/internal/operate/controller/status"
	"croft.dev/croft/internal/operate/controller/tenant/enforcement"
	"croft.dev/croft/internal/operate/controller/tenant/quota"
	"croft.dev/croft/internal/operate/controller/watch"
	"croft.dev/croft/internal/operate/trace"
	"croft.dev/croft/internal/walls/gitops"
	"croft.dev/croft/internal/walls/wall/network"
)

// concurrency is the number of tenants that are reconciled at once. Each spends most of its
// time waiting for the API server.
const concurrency = 8

// Controller reconciles Tenants.
type Controller struct {
	client client.Client
	// live reads from the API server.
	live     client.Reader
	declared *declared.Store
	recorder events.EventRecorder
	clock    clock.PassiveClock
	memory   *memory
	retries  *outcome.Retries
	status   *status.Writer

	applier  *apply.Applier
	quota    *quota.Quota
	probe    *enforcement.Probe
	deletion deletion
	// dialects, engines and optional watch kinds that a cluster may not serve: network
	// policies of other dialects, Gatekeeper's kinds, and the kinds of Flux and Multus.
	dialects, engines, optional *watch.Late
}

// New returns a Controller. cached is the manager's client, live a client that reads
// from the API server. servers have to confirm a tenant's rules.
func New(cached, live client.Client, a *apply.Applier, d *declared.Store, r events.EventRecorder, servers *enforcement.Servers, clock clock.WithDelayedExecution) *Controller {
	return &Controller{
		client: cached, live: live, declared: d, recorder: r, clock: clock, memory: newMemory(), retries: outcome.NewRetries("tenant"), status: status.NewWriter(cached),
		applier:  a,
		quota:    quota.New(cached, live, clock),
		probe:    enforcement.New(cached, servers),
		deletion: deletion{live, apply.New(live)},
	}
}

// Register adds the controller to the manager. A tenant is reconciled when its entry in the
// estate changes, when an object that croft created for it changes, and when it is deleted.
func (c *Controller) Register(_ context.Context, m manager.Manager) error {
	repairs := watch.Repairs(watch.MapByLabel(v1alpha1.TenantLabel), c.applier.IsOwnWrite)
	b := builder.ControllerManagedBy(m).
		Named("tenant").
		WithOptions(controller.Options{MaxConcurrentReconciles: concurrency}).
		WatchesRawSource(c.declared.Source(declared.Tenant)).
		Watches(&v1alpha1.Tenant{}, &handler.EnqueueRequestForObject{}, builder.WithPredicates(watch.Deleting())).
		Watches(&v1alpha1.TenantNamespace{}, handler.EnqueueRequestsFromMapFunc(c.mapToRequester), builder.WithPredicates(watch.Deleted())).
		Watches(&corev1.Namespace{}, watch.Repairs(c.mapToTenants, c.applier.IsOwnWrite), builder.WithPredicates(watch.Drift()))
	for _, o := range []client.Object{
		&v1alpha1.TenantRules{}, &corev1.ServiceAccount{}, &networkingv1.NetworkPolicy{}, &rbacv1.RoleBinding{},
		&corev1.ResourceQuota{}, &corev1.LimitRange{}, &corev1.ConfigMap{},
	} {
		b = b.Watches(o, repairs, builder.WithPredicates(watch.Drift()))
	}
	b = b.Watches(&corev1.ResourceQuota{}, c.quota.Handler()).
		Watches(&corev1.Event{}, c.quota.RefusalHandler())
	built, err := b.Build(trace.Reconciler("tenant", c))
	if err != nil {
		return err
	}
	c.dialects = watchDialects(m, built, repairs)
	c.engines = watch.NewLate(m, built, repairs, apply.GatekeeperTenantKinds, watch.Drift())
	c.optional = watch.NewLate(m, built, repairs, apply.OptionalKinds, watch.Drift())
	return nil
}

// mapToTenants returns the tenants that an event on a namespace may affect: its owner, the
// tenant that may adopt it, and the tenant that declares it.
func (c *Controller) mapToTenants(_ context.Context, o client.Object) []reconcile.Request {
	names := []string{o.GetLabels()[v1alpha1.TenantLabel], o.GetAnnotations()[v1alpha1.AdoptAnnotation]}
	if snapshot := c.declared.Current(); snapshot != nil {
		names = append(names, snapshot.Claimant(o.GetName()))
	}
	return watch.MakeRequests(names...)
}

// mapToRequester returns the tenant of a TenantNamespace. A request that is deleted before it is
// in the estate may leave a namespace behind.
func (c *Controller) mapToRequester(_ context.Context, o client.Object) []reconcile.Request {
	snapshot := c.declared.Current()
	if snapshot == nil {
		return nil
	}
	return watch.MakeRequests(snapshot.Claimant(o.GetNamespace()))
}

// Reconcile implements reconcile.Reconciler.
func (c *Controller) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	result, err := c.reconcileTenant(ctx, req)
	return c.retries.Resolve(ctx, req.Name, result, err)
}

func (c *Controller) reconcileTenant(ctx context.Context, req reconcile.Request) (result reconcile.Result, err error) {
	tenant := &v1alpha1.Tenant{}
	if err := c.client.Get(ctx, req.NamespacedName, tenant); err != nil {
		if apierrors.IsNotFound(err) {
			c.memory.forget(req.Name)
			c.quota.Forget(req.Name)
			repair.Forget(req.Name)
			c.status.Forget(req.Name)
		}
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	snapshot := c.declared.Current()
	if snapshot == nil {
		return reconcile.Result{}, nil
	}
	entry, ok := snapshot.Tenant(tenant.Name)
	deleting := !tenant.DeletionTimestamp.IsZero()
	if !deleting && (!ok || entry.UID != tenant.UID || entry.Generation != tenant.Generation) {
		// The next estate will contain this version of the tenant, and reconcile it then.
		return reconcile.Result{}, nil
	}

	if deleting && !controllerutil.ContainsFinalizer(tenant, v1alpha1.TenantFinalizer) {
		return reconcile.Result{}, nil
	}

	before := tenant.DeepCopy()
	seen := observation{entry: entry, hasPlatform: snapshot.Platform != nil, since: notEnforcedSince(tenant)}
	began := time.Now()
	defer func() {
		c.emitChanges(ctx, tenant, &seen)
		ready, failed := c.writeStatus(ctx, before, tenant, &seen, err)
		err = errors.Join(err, failed)
		decision.Log(ctx, "tenant", tenant, began, seen.changes, ready)
	}()

	if deleting {
		err := c.finalizeTenant(ctx, tenant, before, &seen)
		if len(seen.remainingNamespaces) > 0 {
			result.RequeueAfter = recheck
		}
		return result, err
	}
	if entry.Value == nil {
		return reconcile.Result{}, nil
	}
	if err := c.ensureFinalizer(ctx, tenant, before); err != nil {
		seen.maybeDeleted = true
		return reconcile.Result{}, err
	}
	if err := c.claimDomains(ctx, before, tenant); err != nil {
		return reconcile.Result{}, err
	}
	return c.reconcileWalls(ctx, snapshot, tenant, &seen)
}

// reconcileWalls writes the walls of a valid tenant, and probes whether they are enforced.
func (c *Controller) reconcileWalls(ctx context.Context, snapshot *declared.Snapshot, object *v1alpha1.Tenant, seen *observation) (reconcile.Result, error) {
	tenant := seen.entry.Value
	needed := mutatorKinds(snapshot.Platform.Placement)
	engines, enginesErr := c.engines.Look(ctx, needed...)
	served, dialectsErr := c.dialects.Look(ctx, network.ListKinds(snapshot.Platform)...)
	optional, optionalErr := c.optional.Look(ctx, slices.Concat(gitops.Kinds(snapshot.Platform, tenant), network.ListTenantKinds(tenant))...)
	seen.unserved = errors.Join(checkFlux(snapshot.Platform, tenant, optional), checkNetworkKinds(tenant, optional))
	served = append(served, optional...)
	// The priority of the event that caused this reconcile does not apply to the next one.
	after := reconcile.Result{Priority: ptr.To(0)}
	if seen.unserved != nil {
		after.RequeueAfter = watch.Absence
	}
	if len(watch.Intersect(needed, engines)) < len(needed) {
		// Gatekeeper may be installed after croft.
		after.RequeueAfter = watch.Absence
	}
	last := c.memory.get(tenant.Name)
	seen.wasInPlace = last.revision == seen.entry.Revision
	// Forget that the walls are enforced until this reconcile is done.
	c.memory.remember(tenant.Name, wallState{revision: last.revision})

	withdrawn, withdrawErr := c.withdrawNamespaces(ctx, tenant, served)
	division, applied, applyErr := c.writeWalls(ctx, snapshot.Platform, object, tenant, served)
	seen.applied = true
	seen.changes = slices.Concat(withdrawn, applied)
	seen.err = errors.Join(withdrawErr, mergeDialectErrors(snapshot.Platform, served, applyErr), enginesErr, dialectsErr, optionalErr)
	if seen.err != nil {
		return reconcile.Result{}, seen.err
	}

	if len(division.Uncounted) > 0 {
		// The watch on ResourceQuotas reconciles the tenant when it is counted.
		if rest := c.memory.awaitCount(tenant.Name, last, c.clock.Now()); rest > 0 && hasNoVerdict(object) && seen.unserved == nil {
			seen.awaitsCount = true
			return reconcile.Result{RequeueAfter: rest}, nil
		}
		seen.probed = true
		seen.reason = v1alpha1.ReasonNotEnforcedYet
		seen.message = "the quota is not in force yet, so the tenant's people have no access yet: kube-controller-manager has not counted the usage in " +
			strings.Join(division.Uncounted, ", ")
		return reconcile.Result{RequeueAfter: seen.getProbeDelay(c.clock.Now())}, nil
	}
	// The status may lack the engine although the walls were observed to be enforced: that
	// write may have failed or lost a race.
	if last.enforced == seen.entry.RulesRevision && !seen.hasWrittenRules() && object.Status.Placement == snapshot.Platform.Placement {
		seen.enforced, seen.caveat = true, c.probe.Caveat()
		c.memory.remember(tenant.Name, wallState{revision: seen.entry.Revision, enforced: last.enforced})
		return after, nil
	}
	seen.probed = true
	seen.reason, seen.message = c.probe.Check(ctx, snapshot.Platform, tenant)
	seen.enforced, seen.caveat = seen.message == "", c.probe.Caveat()
	if seen.enforced {
		changes, err := c.settlePlacement(ctx, snapshot.Platform, object, tenant, engines)
		seen.changes, seen.err = append(seen.changes, changes...), err
		if err != nil {
			return reconcile.Result{}, err
		}
	}
	state := wallState{revision: seen.entry.Revision}
	if seen.enforced {
		state.enforced = seen.entry.RulesRevision
	}
	c.memory.remember(tenant.Name, state)
	if !seen.enforced {
		return reconcile.Result{RequeueAfter: seen.getProbeDelay(c.clock.Now())}, nil
	}
	return after, nil
}

// hasNoVerdict reports whether croft has never reported whether the tenant's walls are enforced.
func hasNoVerdict(tenant *v1alpha1.Tenant) bool {
	return meta.FindStatusCondition(tenant.Status.Conditions, v1alpha1.ConditionEnforced) == nil
}

// attempts limits how often a tenant's walls are written in one reconcile if its
// ResourceQuotas change meanwhile. The API server changes them with every pod.
const attempts = 5

// writeWalls divides the quota and writes the walls with the result. It deletes policies of the
// served dialects that are no longer desired.
func (c *Controller) writeWalls(ctx context.Context, platform *estate.Platform, object *v1alpha1.Tenant, tenant *estate.Tenant, served []schema.GroupVersionKind) (*quota.Division, []apply.Change, error) {
	var all []apply.Change
	for attempt := 1; ; attempt++ {
		division, err := c.quota.Reconcile(ctx, object, tenant)
		if err == nil {
			var changes []apply.Change
			changes, err = c.applyWalls(ctx, platform, division, served)
			all = append(all, division.OmitMoves(changes)...)
		}
		if !apierrors.IsConflict(err) || attempt == attempts {
			return division, all, err
		}
	}
}
