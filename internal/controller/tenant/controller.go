// Package tenant decides when a tenant's walls are written, and tells its people
// how they stand. The work is done by the packages below, one for each concern,
// in one queue: so nothing is given to a tenant while it is being taken away.
package tenant

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/apply"
	"croft.dev/croft/internal/controller/declared"
	"croft.dev/croft/internal/controller/outcome"
	"croft.dev/croft/internal/controller/status"
	"croft.dev/croft/internal/controller/tenant/deletion"
	"croft.dev/croft/internal/controller/tenant/enforcement"
	"croft.dev/croft/internal/controller/tenant/namespaces"
	"croft.dev/croft/internal/controller/tenant/placement"
	"croft.dev/croft/internal/controller/tenant/quota"
	"croft.dev/croft/internal/controller/tenant/walls"
	"croft.dev/croft/internal/controller/watch"
	"croft.dev/croft/internal/estate"
	"croft.dev/croft/internal/wall/network"
)

// concurrency is how many tenants are worked on at once. Each waits for the API
// server most of its time.
const concurrency = 8

// Controller reconciles Tenants.
type Controller struct {
	client   client.Client
	declared *declared.Store
	recorder events.EventRecorder
	memory   *memory

	walls      *walls.Walls
	namespaces *namespaces.Namespaces
	quota      *quota.Quota
	probe      *enforcement.Probe
	placement  *placement.Placement
	deletion   *deletion.Deletion
	// dialects and engines are kinds that a cluster may not have: network policies,
	// and what Gatekeeper needs.
	dialects, engines *watch.Late
}

// New returns a Controller. cached is the manager's client, live one that reads
// from the API server.
func New(cached, live client.Client, a *apply.Applier, d *declared.Store, r events.EventRecorder) *Controller {
	return &Controller{
		client: cached, declared: d, recorder: r, memory: newMemory(),
		walls:      walls.New(a),
		namespaces: namespaces.New(cached, a),
		quota:      quota.New(cached, live),
		probe:      enforcement.New(cached),
		placement:  placement.New(a),
		deletion:   deletion.New(live),
	}
}

// Register makes the manager run the controller. A tenant is reconciled when the
// estate says that something about it came out differently, when something that
// croft made for it changed, and when it is to be deleted.
func (c *Controller) Register(_ context.Context, m manager.Manager) error {
	b := builder.ControllerManagedBy(m).
		Named("tenant").
		WithOptions(controller.Options{MaxConcurrentReconciles: concurrency}).
		WatchesRawSource(c.declared.Source(declared.Tenant)).
		Watches(&v1alpha1.Tenant{}, &handler.EnqueueRequestForObject{}, builder.WithPredicates(watch.Leaving())).
		Watches(&corev1.Namespace{}, handler.EnqueueRequestsFromMapFunc(c.concerned), builder.WithPredicates(watch.Drift()))
	for _, o := range []client.Object{
		&v1alpha1.TenantRules{}, &networkingv1.NetworkPolicy{}, &rbacv1.RoleBinding{},
		&corev1.ResourceQuota{}, &corev1.LimitRange{},
	} {
		b = b.Watches(o, watch.ByLabel(v1alpha1.TenantLabel), builder.WithPredicates(watch.Drift()))
	}
	b = b.Watches(&corev1.ResourceQuota{}, c.quota.Handler())
	built, err := b.Build(c)
	if err != nil {
		return err
	}
	c.dialects = dialects(m, built)
	c.engines = watch.NewLate(m, built, watch.ByLabel(v1alpha1.TenantLabel), apply.GatekeeperTenantKinds, watch.Drift())
	return nil
}

// concerned are the tenants that a namespace is something to: the one whose it
// is, the one that it is offered to, and the one that declares it.
func (c *Controller) concerned(_ context.Context, o client.Object) []reconcile.Request {
	names := []string{o.GetLabels()[v1alpha1.TenantLabel], o.GetAnnotations()[v1alpha1.AdoptAnnotation]}
	if snapshot := c.declared.Current(); snapshot != nil {
		names = append(names, snapshot.Claimant(o.GetName()))
	}
	return watch.Names(names...)
}

// Reconcile implements reconcile.Reconciler.
func (c *Controller) Reconcile(ctx context.Context, req reconcile.Request) (result reconcile.Result, err error) {
	tenant := &v1alpha1.Tenant{}
	if err := c.client.Get(ctx, req.NamespacedName, tenant); err != nil {
		if apierrors.IsNotFound(err) {
			c.memory.forget(req.Name)
			c.quota.Forget(req.Name)
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
		// The estate is about to be built with this tenant, and will ask again.
		return reconcile.Result{}, nil
	}

	if deleting && !controllerutil.ContainsFinalizer(tenant, v1alpha1.TenantFinalizer) {
		return reconcile.Result{}, nil
	}

	before := tenant.DeepCopy()
	seen := sighting{entry: entry, hasPlatform: snapshot.Platform != nil, since: inVainSince(tenant)}
	defer func() {
		seen.report(tenant)
		c.tell(before, tenant, &seen)
		if !seen.gone {
			outcome.Also(&result, &err, status.Patch(ctx, c.client, before, tenant))
		}
	}()

	if deleting {
		return c.delete(ctx, tenant, before, &seen)
	}
	if entry.Value == nil {
		return reconcile.Result{}, nil
	}
	if controllerutil.AddFinalizer(tenant, v1alpha1.TenantFinalizer) {
		if err := c.patchFinalizers(ctx, tenant, before); err != nil {
			return outcome.Of(err)
		}
	}
	return c.stand(ctx, snapshot, tenant, &seen)
}

// stand makes the walls of a valid tenant stand, and sees whether they hold.
func (c *Controller) stand(ctx context.Context, snapshot *declared.Snapshot, object *v1alpha1.Tenant, seen *sighting) (reconcile.Result, error) {
	tenant := seen.entry.Value
	needed := placement.Kinds(snapshot.Platform.Placement)
	engines, enginesErr := c.engines.Look(needed...)
	spoken, dialectsErr := c.dialects.Look(network.Kinds(snapshot.Platform)...)
	var after reconcile.Result
	if len(watch.Among(needed, engines)) < len(needed) {
		// Gatekeeper may come later than croft.
		after.RequeueAfter = watch.Absence
	}
	last := c.memory.of(tenant.Name)
	seen.stood = last.revision == seen.entry.Revision

	withdrawn, withdrawErr := c.namespaces.Reconcile(ctx, tenant)
	division, applied, applyErr := c.write(ctx, snapshot.Platform, object, tenant, spoken)
	seen.applied = true
	seen.changes = slices.Concat(withdrawn, applied)
	seen.err = errors.Join(withdrawErr, unspoken(snapshot.Platform, spoken, applyErr), enginesErr, dialectsErr)
	if seen.err != nil {
		c.memory.remember(tenant.Name, standing{})
		return outcome.Of(seen.err)
	}

	if len(division.Uncounted) > 0 {
		// An event will tell when it is counted.
		c.memory.remember(tenant.Name, standing{})
		seen.probed = true
		seen.why = "the quota does not hold yet, and so nobody is let in: kube-controller-manager has not counted what is used in " +
			strings.Join(division.Uncounted, ", ")
		return reconcile.Result{RequeueAfter: seen.patience()}, nil
	}
	if seen.stood && last.enforced && !seen.wrote() {
		seen.enforced = true
		return after, nil
	}
	seen.probed = true
	seen.why = c.probe.Check(ctx, snapshot.Platform, tenant)
	seen.enforced = seen.why == ""
	if seen.enforced {
		changes, err := c.placement.Settle(ctx, snapshot.Platform, object, tenant, engines)
		seen.changes, seen.err = append(seen.changes, changes...), err
		if err != nil {
			c.memory.remember(tenant.Name, standing{})
			return outcome.Of(err)
		}
	}
	c.memory.remember(tenant.Name, standing{revision: seen.entry.Revision, enforced: seen.enforced})
	if !seen.enforced {
		return reconcile.Result{RequeueAfter: seen.patience()}, nil
	}
	return after, nil
}

// attempts are how often a tenant's walls are gone through if somebody else writes
// to its ResourceQuotas meanwhile, as the API server does with every pod.
const attempts = 5

// write divides the quota and writes the walls by it. What stands of the served
// dialects and is wanted no longer goes.
func (c *Controller) write(ctx context.Context, platform *estate.Platform, object *v1alpha1.Tenant, tenant *estate.Tenant, served []schema.GroupVersionKind) (*quota.Division, []apply.Change, error) {
	var all []apply.Change
	for attempt := 1; ; attempt++ {
		division, err := c.quota.Reconcile(ctx, object, tenant)
		if err == nil {
			var changes []apply.Change
			changes, err = c.walls.Reconcile(ctx, platform, division, served)
			all = append(all, division.News(changes)...)
		}
		if !apierrors.IsConflict(err) || attempt == attempts {
			return division, all, err
		}
	}
}

// delete takes away what the tenant has, and then lets the Tenant go.
func (c *Controller) delete(ctx context.Context, tenant, before *v1alpha1.Tenant, seen *sighting) (reconcile.Result, error) {
	seen.deleting = true
	var err error
	seen.leaving, seen.changes, err = c.deletion.Reconcile(ctx, tenant)
	if err != nil || len(seen.leaving) > 0 {
		seen.err = err
		// When the last namespace is gone, its event asks again.
		return outcome.Of(err)
	}
	c.memory.forget(tenant.Name)
	controllerutil.RemoveFinalizer(tenant, v1alpha1.TenantFinalizer)
	if err := c.patchFinalizers(ctx, tenant, before); err != nil {
		return outcome.Of(err)
	}
	seen.gone = true
	return reconcile.Result{}, nil
}

// patchFinalizers writes the finalizers of a tenant, if it is still the one that
// was read, and leaves its status alone.
func (c *Controller) patchFinalizers(ctx context.Context, tenant, before *v1alpha1.Tenant) error {
	patch := client.MergeFromWithOptions(before.DeepCopy(), client.MergeFromWithOptimisticLock{})
	if err := c.client.Patch(ctx, tenant, patch); client.IgnoreNotFound(err) != nil {
		tenant.ObjectMeta = *before.ObjectMeta.DeepCopy()
		return fmt.Errorf("patch finalizers: %w", err)
	}
	before.ObjectMeta = *tenant.ObjectMeta.DeepCopy()
	return nil
}
