// Package platform reconciles the cluster-wide objects of the walls.
package platform

import (
	"context"
	"errors"
	"slices"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/operate/apply"
	"croft.dev/croft/internal/operate/controller/decision"
	"croft.dev/croft/internal/operate/controller/declared"
	"croft.dev/croft/internal/operate/controller/outcome"
	"croft.dev/croft/internal/operate/controller/owner"
	"croft.dev/croft/internal/operate/controller/repair"
	"croft.dev/croft/internal/operate/controller/status"
	"croft.dev/croft/internal/operate/controller/watch"
	"croft.dev/croft/internal/operate/trace"
	"croft.dev/croft/internal/walls/wall"
	"croft.dev/croft/internal/walls/wall/network"
)

// Controller reconciles the Platform. It needs no finalizer, because every wall remains
// when the Platform is deleted.
type Controller struct {
	client client.Client
	// live reads objects that are not in the cache, because croft did not create them and
	// rarely needs them.
	live     client.Client
	applier  *apply.Applier
	declared *declared.Store
	recorder events.EventRecorder
	// late watches the kinds of the placement engines; a cluster may have only one.
	late *watch.Late
	// enqueuePlatform enqueues the Platform.
	enqueuePlatform handler.EventHandler

	// appliedRevision is the revision for which every object was in place. There is one worker.
	appliedRevision uint64
	retries         *outcome.Retries
	status          *status.Writer
}

// New returns a Controller. cached is the manager's client, live a client that reads
// from the API server.
func New(cached, live client.Client, a *apply.Applier, d *declared.Store, r events.EventRecorder) *Controller {
	ours := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
		return watch.MakeRequests(v1alpha1.PlatformName)
	})
	return &Controller{
		client: cached, live: live, applier: a, declared: d, recorder: r, enqueuePlatform: ours,
		retries: outcome.NewRetries("platform"), status: status.NewWriter(cached),
	}
}

// Register adds the controller to the manager. The cache has only croft's own objects of
// the watched kinds.
func (c *Controller) Register(_ context.Context, m manager.Manager) error {
	b := builder.ControllerManagedBy(m).Named("platform").WatchesRawSource(c.declared.Source(declared.Platform)).
		Watches(&v1alpha1.Tenant{}, c.enqueuePlatform, builder.WithPredicates(newPlacementPredicate()))
	for _, o := range []client.Object{
		&admissionv1.ValidatingAdmissionPolicy{}, &admissionv1.ValidatingAdmissionPolicyBinding{}, &rbacv1.ClusterRole{}, &rbacv1.ClusterRoleBinding{},
	} {
		b = b.Watches(o, c.enqueuePlatform, builder.WithPredicates(watch.Drift()))
	}
	built, err := b.Build(trace.Reconciler("platform", c))
	if err != nil {
		return err
	}
	c.late = watch.NewLate(m, built, c.enqueuePlatform, slices.Concat(apply.NativePlatformKinds, apply.NativeBetaKinds, apply.GatekeeperPlatformKinds), watch.Drift())
	return nil
}

// Reconcile implements reconcile.Reconciler.
func (c *Controller) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	result, err := c.reconcilePlatform(ctx, req)
	return c.retries.Resolve(ctx, req.Name, result, err)
}

func (c *Controller) reconcilePlatform(ctx context.Context, req reconcile.Request) (result reconcile.Result, err error) {
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
		// The next estate will contain this version of the Platform, and reconcile it then.
		return reconcile.Result{}, nil
	}

	if err := owner.Check(ctx, c.live, string(declared.Platform), platform, ""); err != nil {
		return reconcile.Result{}, err
	}
	before, began := platform.DeepCopy(), time.Now()
	var changes []apply.Change
	defer func() {
		ready, failed := c.writeStatus(ctx, before, platform, err)
		err = errors.Join(err, failed)
		decision.Log(ctx, "platform", platform, began, changes, ready)
	}()
	if !status.Accept(&platform.Status.Status, platform.Generation, true, entry.Problems) || entry.Value == nil {
		return reconcile.Result{}, nil
	}
	seen, err := c.observeEngine(ctx, entry.Value)
	if err != nil {
		return reconcile.Result{}, err
	}
	seen.reportCondition(platform)
	if entry.Value.Placement == v1alpha1.PlacementGatekeeper {
		result.RequeueAfter = recheck
	}
	if seen.reason == v1alpha1.ReasonEngineMissing {
		// Without the engine no object can place pods. Existing objects stay. The rights of
		// the platform's people do not depend on the engine: people need them to read and
		// fix the problem.
		result.RequeueAfter = missing
		changes, err = c.applier.Apply(ctx, listRights(entry.Value)...)
		return result, err
	}
	changes, err = c.reconcileObjects(ctx, entry.Value, seen)
	if c.appliedRevision == entry.Revision {
		// A change of a wall's policies affects every tenant, so its repair is a warning.
		repair.Report(ctx, c.recorder, platform, corev1.EventTypeWarning, "", repair.Find(changes))
	}
	reportApplied(platform, err)
	if err != nil {
		return reconcile.Result{}, err
	}
	c.appliedRevision = entry.Revision
	return result, nil
}

// reconcileObjects applies the cluster-wide objects, and then deletes objects that are no
// longer desired, unless another engine still needs them.
func (c *Controller) reconcileObjects(ctx context.Context, platform *estate.Platform, seen engine) ([]apply.Change, error) {
	if err := c.applier.CopyRules(ctx); err != nil {
		return nil, err
	}
	objects := wall.PlatformObjects(platform)
	changes, err := c.applier.Apply(ctx, objects...)
	if err != nil {
		return changes, err
	}
	if err := c.checkDialect(platform); err != nil {
		return changes, err
	}
	pruned, err := c.applier.Prune(ctx, apply.OfPlatform(), "", slices.Concat(objects, seen.leftover), slices.Concat(apply.PlatformKinds, seen.served)...)
	return append(changes, pruned...), err
}

// listRights returns the platform's ClusterRoles and their bindings.
func listRights(platform *estate.Platform) []client.Object {
	return slices.DeleteFunc(wall.PlatformObjects(platform), func(o client.Object) bool {
		return o.GetObjectKind().GroupVersionKind().Group != rbacv1.GroupName
	})
}

// checkDialect returns an error if the cluster does not serve the platform's dialect
// of network policies.
func (c *Controller) checkDialect(platform *estate.Platform) error {
	for _, kind := range network.ListKinds(platform) {
		if _, err := c.client.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version); err != nil {
			return &apply.DialectError{Dialect: platform.Network.Dialect, Kind: kind, Err: err}
		}
	}
	return nil
}
