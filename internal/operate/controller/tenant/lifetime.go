package tenant

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/operate/controller/declared"
	"croft.dev/croft/internal/operate/controller/owner"
)

// ensureFinalizer ensures that the tenant exists and has croft's finalizer, so that it remains until
// croft has deleted its objects.
func (c *Controller) ensureFinalizer(ctx context.Context, tenant, before *v1alpha1.Tenant) error {
	if controllerutil.AddFinalizer(tenant, v1alpha1.TenantFinalizer) {
		return c.patchFinalizers(ctx, tenant, before)
	}
	return owner.Check(ctx, c.live, string(declared.Tenant), tenant, v1alpha1.TenantFinalizer)
}

// finalizeTenant cleans up after the tenant, and then removes its finalizer.
func (c *Controller) finalizeTenant(ctx context.Context, tenant, before *v1alpha1.Tenant, seen *observation) error {
	seen.deleting = true
	// A tenant of the same name may have been created since.
	err := owner.Check(ctx, c.live, string(declared.Tenant), tenant, v1alpha1.TenantFinalizer)
	if err != nil {
		seen.maybeDeleted = true
		return err
	}
	seen.remainingNamespaces, seen.changes, err = c.deletion.cleanUp(ctx, tenant)
	if err != nil || len(seen.remainingNamespaces) > 0 {
		seen.err = err
		// The last namespace's own deletion event reconciles the tenant again.
		return err
	}
	c.memory.forget(tenant.Name)
	controllerutil.RemoveFinalizer(tenant, v1alpha1.TenantFinalizer)
	if err := c.patchFinalizers(ctx, tenant, before); err != nil {
		return err
	}
	seen.finalizerRemoved = true
	return nil
}

// patchFinalizers writes the finalizers of a tenant if it has not changed since it was
// read.
func (c *Controller) patchFinalizers(ctx context.Context, tenant, before *v1alpha1.Tenant) error {
	if err := owner.PatchFinalizers(ctx, c.client, tenant, before.DeepCopy()); err != nil {
		tenant.ObjectMeta = *before.ObjectMeta.DeepCopy()
		return err
	}
	before.ObjectMeta = *tenant.ObjectMeta.DeepCopy()
	return nil
}
