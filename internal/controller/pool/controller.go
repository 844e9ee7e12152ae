// Package pool makes the Karpenter objects of pools stand, and tells how the
// pools' nodes are.
package pool

import (
	"context"

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
	"croft.dev/croft/internal/apply"
	"croft.dev/croft/internal/controller/declared"
	"croft.dev/croft/internal/controller/outcome"
	"croft.dev/croft/internal/controller/status"
	"croft.dev/croft/internal/controller/watch"
	"croft.dev/croft/internal/estate"
	"croft.dev/croft/internal/wall"
)

// Controller reconciles Pools.
type Controller struct {
	client  client.Client
	applier *apply.Applier
	// live deletes by what the API server has. A cache may not know yet of what
	// was made a moment ago, and nobody would look for it afterwards.
	live     *apply.Applier
	declared *declared.Store
	recorder events.EventRecorder

	// karpenter are Karpenter's kinds. A cluster has the node classes of one cloud
	// only, and may get Karpenter itself after croft: until then pools say that it is
	// missing, and are looked at again every half minute.
	karpenter *watch.Late
	// stood are the revisions for which everything stood. There is one worker.
	stood map[string]uint64
}

// New returns a Controller. cached is the manager's client, live one that reads
// from the API server.
func New(cached, live client.Client, a *apply.Applier, d *declared.Store, r events.EventRecorder) *Controller {
	return &Controller{
		client: cached, applier: a, live: apply.New(live), declared: d, recorder: r,
		stood: map[string]uint64{},
	}
}

// Register makes the manager run the controller. A pool is reconciled when the
// estate says that something about it or its users came out differently, when it
// is to be deleted, and when Karpenter reports about its NodePool.
func (c *Controller) Register(_ context.Context, m manager.Manager) error {
	built, err := builder.ControllerManagedBy(m).
		Named("pool").
		WatchesRawSource(c.declared.Source(declared.Pool)).
		Watches(&v1alpha1.Pool{}, &handler.EnqueueRequestForObject{}, builder.WithPredicates(watch.Leaving())).
		Build(c)
	if err != nil {
		return err
	}
	c.karpenter = watch.NewLate(m, built, watch.ByLabel(v1alpha1.PoolLabel), apply.PoolKinds)
	return nil
}

// Reconcile implements reconcile.Reconciler.
func (c *Controller) Reconcile(ctx context.Context, req reconcile.Request) (result reconcile.Result, err error) {
	if _, err := c.karpenter.Look(); err != nil {
		return reconcile.Result{}, err
	}
	pool := &v1alpha1.Pool{}
	if err := c.client.Get(ctx, req.NamespacedName, pool); err != nil {
		if apierrors.IsNotFound(err) {
			delete(c.stood, req.Name)
		}
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	snapshot := c.declared.Current()
	if snapshot == nil {
		return reconcile.Result{}, nil
	}
	entry, ok := snapshot.Pool(pool.Name)
	deleting := !pool.DeletionTimestamp.IsZero()
	if !ok || entry.UID != pool.UID || !deleting && entry.Generation != pool.Generation {
		// The estate is about to be built with this pool, and will ask again.
		return reconcile.Result{}, nil
	}
	if deleting && len(entry.Users) == 0 {
		return c.delete(ctx, pool)
	}

	before := pool.DeepCopy()
	seen := sighting{entry: entry, hasPlatform: snapshot.Platform != nil, deleting: deleting}
	defer func() {
		seen.report(pool)
		outcome.Also(&result, &err, status.Patch(ctx, c.client, before, pool))
	}()
	if entry.Value == nil {
		return reconcile.Result{}, nil
	}
	if !deleting && controllerutil.AddFinalizer(pool, v1alpha1.PoolFinalizer) {
		if err := c.patchFinalizers(ctx, pool, before); err != nil {
			return outcome.Of(err)
		}
		before.ObjectMeta = *pool.ObjectMeta.DeepCopy()
	}
	changes, err := c.stand(ctx, snapshot.Platform, entry.Value)
	seen.applied, seen.err = true, err
	if err == nil {
		seen.nodePool, err = c.nodePool(ctx, pool.Name)
	}
	c.remember(pool, entry.Revision, changes, seen.err)
	return outcome.Of(err)
}

// stand applies what all walls want, and then deletes what they want no longer,
// such as a node class of another cloud.
func (c *Controller) stand(ctx context.Context, platform *estate.Platform, pool *estate.Pool) ([]apply.Change, error) {
	objects := wall.PoolObjects(platform, pool)
	changes, err := c.applier.Apply(ctx, objects...)
	if err != nil {
		return changes, err
	}
	pruned, err := c.applier.Prune(ctx, apply.OfPool(pool.Name), "", objects, apply.PoolKinds...)
	return append(changes, pruned...), err
}

// nodePool returns what Karpenter reports; nil until the cache has it.
func (c *Controller) nodePool(ctx context.Context, name string) (*karpenterv1.NodePool, error) {
	nodePool := &karpenterv1.NodePool{}
	if err := c.client.Get(ctx, client.ObjectKey{Name: name}, nodePool); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	return nodePool, nil
}
