package tenant

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/operate/apply"
	"croft.dev/croft/internal/operate/controller/watch"
	"croft.dev/croft/internal/walls/wall"
)

// mutatorKinds returns the kinds of a placement engine's objects for each tenant.
func mutatorKinds(engine v1alpha1.PlacementEngine) []schema.GroupVersionKind {
	if engine == v1alpha1.PlacementGatekeeper {
		return apply.GatekeeperMutatorKinds
	}
	return nil
}

// settlePlacement deletes the objects of the previous engine, and records that the
// platform's engine places the tenant's pods. It is called once that was observed; until
// then the objects stay. A new tenant has none. served are the kinds that the cluster
// serves.
func (c *Controller) settlePlacement(ctx context.Context, platform *estate.Platform, object *v1alpha1.Tenant, tenant *estate.Tenant, served []schema.GroupVersionKind) ([]apply.Change, error) {
	isNew := object.Status.ObservedGeneration == 0
	if platform.Placement == v1alpha1.PlacementNative && (isNew || object.Status.Placement == v1alpha1.PlacementNative) {
		object.Status.Placement = platform.Placement
		return nil, nil
	}
	kinds := watch.Intersect(apply.GatekeeperTenantKinds, served)
	changes, err := c.applier.Prune(ctx, apply.OfTenant(tenant.Name), "", wall.TenantObjects(platform, tenant), kinds...)
	if err == nil {
		object.Status.Placement = platform.Placement
	}
	return changes, err
}
