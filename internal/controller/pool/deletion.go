package pool

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/apply"
	"croft.dev/croft/internal/controller/declared"
	"croft.dev/croft/internal/controller/owner"
)

// delete deletes the objects of a pool that no tenant uses, and then removes the Pool's
// finalizer. Karpenter drains the nodes of a NodePool before its deletion completes.
func (c *Controller) delete(ctx context.Context, pool *v1alpha1.Pool) error {
	if !controllerutil.ContainsFinalizer(pool, v1alpha1.PoolFinalizer) {
		return nil
	}
	// A pool of the same name may have been created since.
	if err := owner.Check(ctx, c.reader, string(declared.Pool), pool, v1alpha1.PoolFinalizer); err != nil {
		return err
	}
	if _, err := c.live.Prune(ctx, apply.OfPool(pool.Name), "", nil, apply.PoolKinds...); err != nil {
		return err
	}
	delete(c.stood, pool.Name)
	before := pool.DeepCopy()
	controllerutil.RemoveFinalizer(pool, v1alpha1.PoolFinalizer)
	return owner.PatchFinalizers(ctx, c.client, pool, before)
}
