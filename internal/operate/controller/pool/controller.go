// Package pool reconciles the Karpenter objects of pools, and reports the state of the
// pools' nodes.
package pool

import (
	"context"
	"errors"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/operate/apply"
	"croft.dev/croft/internal/operate/controller/decision"
	"croft.dev/croft/internal/operate/controller/declared"
	"croft.dev/croft/internal/operate/controller/outcome"
	"croft.dev/croft/internal/operate/controller/owner"
	"croft.dev/croft/internal/operate/controller/status"
	"croft.dev/croft/internal/operate/controller/watch"
	"croft.dev/croft/internal/operate/trace"
	"croft.dev/croft/internal/walls/wall"
)

// lookAgain is how often a pool that waits for its networks is reconciled: no event reports
// that the node readiness controller was installed.
const lookAgain = time.Minute

// Controller reconciles Pools.
type Controller struct {
	client  client.Client
	applier *apply.Applier
	// reader reads from the API server.
	reader client.Reader
	// live deletes objects that it reads from the API server. A cache may not show a new
	// object, which nothing would delete later.
	live     *apply.Applier
	declared *declared.Store
	recorder events.EventRecorder

	// karpenter watches Karpenter's kinds. A cluster has the node classes of one cloud
	// only, and Karpenter may be installed after croft. Until then pools report that it is
	// missing, and are reconciled every half minute.
	karpenter *watch.Late
	// readiness watches the rules of the node readiness controller, which few clusters
	// have.
	readiness *watch.Late
	// appliedRevisions maps each pool to the revision for which every object was in place. There is
	// one worker.
	appliedRevisions map[string]uint64
	retries          *outcome.Retries
	status           *status.Writer
}

// New returns a Controller. cached is the manager's client, live a client that reads
// from the API server.
func New(cached, live client.Client, a *apply.Applier, d *declared.Store, r events.EventRecorder) *Controller {
	return &Controller{
		client: cached, applier: a, reader: live, live: apply.New(live), declared: d, recorder: r,
		appliedRevisions: map[string]uint64{}, retries: outcome.NewRetries("pool"), status: status.NewWriter(cached),
	}
}

// Register adds the controller to the manager. A pool is reconciled when its entry in the
// estate or the list of its users changes, when it is deleted, and when its Karpenter
// objects change.
func (c *Controller) Register(_ context.Context, m manager.Manager) error {
	built, err := builder.ControllerManagedBy(m).
		Named("pool").
		WatchesRawSource(c.declared.Source(declared.Pool)).
		Watches(&v1alpha1.Pool{}, &handler.EnqueueRequestForObject{}, builder.WithPredicates(watch.Deleting())).
		Build(trace.Reconciler("pool", c))
	if err != nil {
		return err
	}
	c.karpenter = watch.NewLate(m, built, watch.ByLabel(v1alpha1.PoolLabel), apply.PoolKinds)
	c.readiness = watch.NewLate(m, built, watch.ByLabel(v1alpha1.PoolLabel), apply.ReadinessKinds, watch.Drift())
	return nil
}

// Reconcile implements reconcile.Reconciler.
func (c *Controller) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	result, err := c.reconcilePool(ctx, req)
	return c.retries.Resolve(ctx, req.Name, result, err)
}

func (c *Controller) reconcilePool(ctx context.Context, req reconcile.Request) (result reconcile.Result, err error) {
	if _, err := c.karpenter.Look(ctx); err != nil {
		return result, err
	}
	pool := &v1alpha1.Pool{}
	if err := c.client.Get(ctx, req.NamespacedName, pool); err != nil {
		if apierrors.IsNotFound(err) {
			delete(c.appliedRevisions, req.Name)
			c.status.Forget(req.Name)
		}
		return result, client.IgnoreNotFound(err)
	}
	snapshot := c.declared.Current()
	if snapshot == nil {
		return result, nil
	}
	entry, ok := snapshot.Pool(pool.Name)
	deleting := !pool.DeletionTimestamp.IsZero()
	if !ok || entry.UID != pool.UID || !deleting && entry.Generation != pool.Generation {
		// The next estate will contain this version of the pool, and reconcile it then.
		return result, nil
	}
	seen := observation{entry: entry, hasPlatform: snapshot.Platform != nil, deleting: deleting}
	if deleting && len(entry.Users) == 0 {
		if seen.retained, err = c.finalizePool(ctx, pool); err != nil || len(seen.retained) == 0 {
			return result, err
		}
		result.RequeueAfter = recheck
	}

	before, began := pool.DeepCopy(), time.Now()
	defer func() {
		ready, failed := c.writeStatus(ctx, before, pool, &seen, err)
		err = errors.Join(err, failed)
		decision.Log(ctx, "pool", pool, began, seen.changes, ready)
	}()
	if entry.Value == nil {
		return result, nil
	}
	if err := c.ensureFinalizer(ctx, pool, before); err != nil {
		seen.maybeDeleted = true
		return result, err
	}
	if entry.Value.WaitForNetworks {
		result.RequeueAfter = lookAgain
	}
	changes, err := c.reconcileObjects(ctx, snapshot.Platform, entry.Value)
	seen.applied, seen.changes, seen.err = true, changes, err
	if err == nil {
		seen.nodePool, err = c.getNodePool(ctx, pool.Name)
	}
	c.recordApplied(ctx, pool, entry.Revision, changes, seen.err)
	return result, err
}

// ensureFinalizer ensures that the pool exists and has croft's finalizer, so that it remains until
// croft has deleted its objects.
func (c *Controller) ensureFinalizer(ctx context.Context, pool, before *v1alpha1.Pool) error {
	if pool.DeletionTimestamp.IsZero() && controllerutil.AddFinalizer(pool, v1alpha1.PoolFinalizer) {
		if err := owner.PatchFinalizers(ctx, c.client, pool, before.DeepCopy()); err != nil {
			return err
		}
		before.ObjectMeta = *pool.ObjectMeta.DeepCopy()
		return nil
	}
	return owner.Check(ctx, c.reader, string(declared.Pool), pool, v1alpha1.PoolFinalizer)
}

// reconcileObjects applies the pool's objects, and then deletes objects that are no longer
// desired, such as a node class of another cloud.
func (c *Controller) reconcileObjects(ctx context.Context, platform *estate.Platform, pool *estate.Pool) ([]apply.Change, error) {
	objects := wall.PoolObjects(platform, pool)
	rules, err := c.readiness.Look(ctx)
	if err != nil {
		return nil, err
	}
	if len(rules) > 0 {
		objects = append(objects, wall.ReadinessObjects(pool)...)
	}
	changes, err := c.applier.Apply(ctx, objects...)
	if err != nil {
		return changes, err
	}
	pruned, err := c.applier.Prune(ctx, apply.OfPool(pool.Name), "", objects, slices.Concat(apply.PoolKinds, rules)...)
	return append(changes, pruned...), err
}

// getNodePool returns the pool's NodePool, or nil if the cache does not have it.
func (c *Controller) getNodePool(ctx context.Context, name string) (*karpenterv1.NodePool, error) {
	nodePool := &karpenterv1.NodePool{}
	if err := c.client.Get(ctx, client.ObjectKey{Name: name}, nodePool); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	return nodePool, nil
}
