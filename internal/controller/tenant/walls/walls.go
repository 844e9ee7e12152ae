// Package walls makes the walls of one tenant stand.
package walls

import (
	"context"
	"errors"

	"croft.dev/croft/internal/apply"
	"croft.dev/croft/internal/controller/tenant/quota"
	"croft.dev/croft/internal/estate"
	"croft.dev/croft/internal/wall"
)

// Walls writes and prunes a tenant's walls.
type Walls struct{ applier *apply.Applier }

// New returns Walls that write by an Applier.
func New(a *apply.Applier) *Walls { return &Walls{a} }

// Reconcile applies what all walls want for a tenant, and deletes from its
// namespaces what they want no longer. Access that was taken away goes at once;
// anything else only once what replaces it stands. Of the objects, those are
// written that the quota's division lets through.
func (w *Walls) Reconcile(ctx context.Context, platform *estate.Platform, division *quota.Division) ([]apply.Change, error) {
	tenant := division.Tenant
	objects := wall.TenantObjects(platform, tenant)
	changes, err := w.applier.Apply(ctx, division.Ready(objects)...)
	prunable := apply.TenantKinds
	if err != nil {
		prunable = apply.AccessKinds
	}
	errs := []error{err}
	for _, namespace := range tenant.Namespaces {
		pruned, err := w.applier.Prune(ctx, apply.OfTenant(tenant.Name), namespace, objects, prunable...)
		changes = append(changes, pruned...)
		errs = append(errs, err)
	}
	return changes, errors.Join(errs...)
}
