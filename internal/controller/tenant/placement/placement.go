// Package placement keeps what a tenant needs where Gatekeeper is the engine, and
// takes it away when another engine was seen to place the tenant's pods.
package placement

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/apply"
	"croft.dev/croft/internal/controller/watch"
	"croft.dev/croft/internal/estate"
	"croft.dev/croft/internal/wall"
)

// Placement prunes mutators, and the constraints of before.
type Placement struct{ applier *apply.Applier }

// New returns a Placement that deletes by an Applier.
func New(a *apply.Applier) *Placement { return &Placement{a} }

// Kinds are those that the engine needs for each tenant.
func Kinds(engine v1alpha1.PlacementEngine) []schema.GroupVersionKind {
	if engine == v1alpha1.PlacementGatekeeper {
		return apply.GatekeeperMutatorKinds
	}
	return nil
}

// Settle notes that the platform's engine was seen to place the tenant's pods, and
// takes away what placed them before. Until then, that stays. A tenant that is new
// has nothing of the kind. The served kinds are those that the cluster has.
func (p *Placement) Settle(ctx context.Context, platform *estate.Platform, object *v1alpha1.Tenant, tenant *estate.Tenant, served []schema.GroupVersionKind) ([]apply.Change, error) {
	isNew := object.Status.ObservedGeneration == 0
	if platform.Placement == v1alpha1.PlacementNative && (isNew || object.Status.Placement == v1alpha1.PlacementNative) {
		object.Status.Placement = platform.Placement
		return nil, nil
	}
	kinds := watch.Among(apply.GatekeeperTenantKinds, served)
	changes, err := p.applier.Prune(ctx, apply.OfTenant(tenant.Name), "", wall.TenantObjects(platform, tenant), kinds...)
	if err == nil {
		object.Status.Placement = platform.Placement
	}
	return changes, err
}
