// Package platform makes stand what the walls want once in the cluster.
package platform

import (
	"context"
	"slices"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/apply"
	"croft.dev/croft/internal/controller/declared"
	"croft.dev/croft/internal/controller/outcome"
	"croft.dev/croft/internal/controller/status"
	"croft.dev/croft/internal/controller/watch"
	"croft.dev/croft/internal/estate"
	"croft.dev/croft/internal/wall"
	"croft.dev/croft/internal/wall/network"
)

// Controller reconciles the Platform. It has no finalizer: with the Platform
// gone, every wall stands as it is.
type Controller struct {
	client client.Client
	// live reads what is not in the cache: what croft has not made, and looks at
	// seldom.
	live     client.Client
	applier  *apply.Applier
	declared *declared.Store
	recorder events.EventRecorder
	// late are the kinds of the placement engines, of which a cluster may have one.
	late *watch.Late
	// ours asks for the Platform.
	ours handler.EventHandler

	// stood is the revision for which everything stood. There is one worker.
	stood uint64
}

// New returns a Controller. cached is the manager's client, live one that reads
// from the API server.
func New(cached, live client.Client, a *apply.Applier, d *declared.Store, r events.EventRecorder) *Controller {
	ours := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
		return watch.Names(v1alpha1.PlatformName)
	})
	return &Controller{client: cached, live: live, applier: a, declared: d, recorder: r, ours: ours}
}

// Register makes the manager run the controller. The kinds that it watches are
// in the cache only so far as they are croft's.
func (c *Controller) Register(_ context.Context, m manager.Manager) error {
	b := builder.ControllerManagedBy(m).Named("platform").WatchesRawSource(c.declared.Source(declared.Platform)).
		Watches(&v1alpha1.Tenant{}, c.ours, builder.WithPredicates(switched()))
	for _, o := range []client.Object{
		&admissionv1.ValidatingAdmissionPolicy{}, &admissionv1.ValidatingAdmissionPolicyBinding{}, &rbacv1.ClusterRole{},
	} {
		b = b.Watches(o, c.ours, builder.WithPredicates(watch.Drift()))
	}
	built, err := b.Build(c)
	if err != nil {
		return err
	}
	c.late = watch.NewLate(m, built, c.ours, slices.Concat(apply.NativePlatformKinds, apply.GatekeeperPlatformKinds), watch.Drift())
	return nil
}

// Reconcile implements reconcile.Reconciler.
func (c *Controller) Reconcile(ctx context.Context, req reconcile.Request) (result reconcile.Result, err error) {
	platform := &v1alpha1.Platform{}
	if err := c.client.Get(ctx, req.NamespacedName, platform); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	snapshot := c.declared.Current()
	if snapshot == nil || req.Name != v1alpha1.PlatformName {
		return reconcile.Result{}, nil
	}
	entry, ok := snapshot.PlatformEntry()
	if !ok || entry.UID != platform.UID || entry.Generation != platform.Generation {
		// The estate is about to be built with this Platform, and will ask again.
		return reconcile.Result{}, nil
	}

	before := platform.DeepCopy()
	defer func() {
		status.Sum(&platform.Status, platform.Generation, v1alpha1.ConditionAccepted, v1alpha1.ConditionPlacementReady, v1alpha1.ConditionApplied)
		outcome.Also(&result, &err, status.Patch(ctx, c.client, before, platform))
	}()
	if !status.Accept(&platform.Status, platform.Generation, true, entry.Problems) || entry.Value == nil {
		return reconcile.Result{}, nil
	}
	seen, err := c.look(ctx, entry.Value)
	if err != nil {
		return outcome.Of(err)
	}
	seen.report(platform)
	if entry.Value.Placement == v1alpha1.PlacementGatekeeper {
		result.RequeueAfter = recheck
	}
	if seen.reason == v1alpha1.ReasonEngineMissing {
		// Nothing can be written that would place a pod; what stood stays.
		result.RequeueAfter = missing
		return result, nil
	}
	changes, err := c.stand(ctx, entry.Value, seen)
	if err != nil {
		c.stood = 0
		status.Set(&platform.Status, platform.Generation, v1alpha1.ConditionApplied, metav1.ConditionFalse, v1alpha1.ReasonApplyFailed, err.Error())
		return outcome.Of(err)
	}
	status.Set(&platform.Status, platform.Generation, v1alpha1.ConditionApplied, metav1.ConditionTrue, v1alpha1.ReasonApplied, "")
	if c.stood == entry.Revision {
		c.tell(platform, changes)
	}
	c.stood = entry.Revision
	return result, nil
}

// stand applies what all walls want, and then deletes what they want no longer,
// but for what another engine still needs.
func (c *Controller) stand(ctx context.Context, platform *estate.Platform, seen engine) ([]apply.Change, error) {
	objects := wall.PlatformObjects(platform)
	changes, err := c.applier.Apply(ctx, objects...)
	if err != nil {
		return changes, err
	}
	if err := c.speaks(platform); err != nil {
		return changes, err
	}
	pruned, err := c.applier.Prune(ctx, apply.OfPlatform(), "", slices.Concat(objects, seen.leftover), slices.Concat(apply.PlatformKinds, seen.served)...)
	return append(changes, pruned...), err
}

// speaks says what is missing where the cluster does not serve the dialect that
// network policies are to be written in.
func (c *Controller) speaks(platform *estate.Platform) error {
	for _, kind := range network.Kinds(platform) {
		if _, err := c.client.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version); err != nil {
			return &apply.DialectError{Dialect: platform.Network.Dialect, Kind: kind, Err: err}
		}
	}
	return nil
}
