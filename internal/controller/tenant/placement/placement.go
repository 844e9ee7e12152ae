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

// Placement prunes mutators and constraints.
type Placement struct {
	applier *apply.Applier
	late    *watch.Late
}

// New returns a Placement. The Late tells the tenants' controller.
func New(a *apply.Applier, l *watch.Late) *Placement { return &Placement{a, l} }

// Watch notices what others do to mutators and constraints, and reports whether it
// can: the kinds of constraints come a moment after their templates.
func (p *Placement) Watch(engine v1alpha1.PlacementEngine) (all bool, err error) {
	if engine != v1alpha1.PlacementGatekeeper {
		return true, nil
	}
	served, err := p.served()
	return len(served) == len(apply.GatekeeperTenantKinds), err
}

// Prune deletes what the engine does not need. It is for a tenant whose pods the
// engine was seen to place: until then, what placed them before stays.
func (p *Placement) Prune(ctx context.Context, platform *estate.Platform, tenant *estate.Tenant) ([]apply.Change, error) {
	kinds, err := p.served()
	if err != nil || len(kinds) == 0 {
		return nil, err
	}
	return p.applier.Prune(ctx, apply.OfTenant(tenant.Name), "", wall.TenantObjects(platform, tenant), kinds...)
}

func (p *Placement) served() ([]schema.GroupVersionKind, error) {
	return p.late.Watch(watch.ByLabel(v1alpha1.TenantLabel), apply.GatekeeperTenantKinds, watch.Drift())
}
