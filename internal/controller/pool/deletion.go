package pool

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/apply"
	"croft.dev/croft/internal/controller/outcome"
)

// delete takes away what was made for a pool that no tenant uses, and then lets
// the Pool go. Karpenter drains the nodes of a NodePool before that is gone.
func (c *Controller) delete(ctx context.Context, pool *v1alpha1.Pool) (reconcile.Result, error) {
	if !controllerutil.ContainsFinalizer(pool, v1alpha1.PoolFinalizer) {
		return reconcile.Result{}, nil
	}
	if _, err := c.live.Prune(ctx, apply.OfPool(pool.Name), "", nil, apply.PoolKinds...); err != nil {
		return outcome.Of(err)
	}
	delete(c.stood, pool.Name)
	before := pool.DeepCopy()
	controllerutil.RemoveFinalizer(pool, v1alpha1.PoolFinalizer)
	return outcome.Of(c.patchFinalizers(ctx, pool, before))
}

// patchFinalizers writes the finalizers of a pool, if it is still the one that
// was read.
func (c *Controller) patchFinalizers(ctx context.Context, pool, before *v1alpha1.Pool) error {
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := c.client.Patch(ctx, pool, patch); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("patch finalizers: %w", err)
	}
	return nil
}
