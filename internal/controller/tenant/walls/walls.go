// Package walls makes the walls of one tenant stand.
package walls

import (
	"context"
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"croft.dev/croft/internal/apply"
	"croft.dev/croft/internal/controller/tenant/quota"
	"croft.dev/croft/internal/controller/watch"
	"croft.dev/croft/internal/estate"
	"croft.dev/croft/internal/wall"
)

// Walls writes and prunes a tenant's walls.
type Walls struct{ applier *apply.Applier }

// New returns Walls that write by an Applier.
func New(a *apply.Applier) *Walls { return &Walls{a} }

// Reconcile applies what all walls want for a tenant, and deletes from its
// namespaces what they want no longer. Access that was taken away goes at once;
// anything else only once what replaces it stands: so a wall that is written in
// another dialect stands twice before it stands in that one alone. Of the objects,
// those are written that the quota's division lets through; of the dialects, those
// are looked through that the cluster serves.
func (w *Walls) Reconcile(ctx context.Context, platform *estate.Platform, division *quota.Division, served []schema.GroupVersionKind) ([]apply.Change, error) {
	tenant := division.Tenant
	objects := wall.TenantObjects(platform, tenant)
	changes, err := w.applier.Apply(ctx, division.Ready(objects)...)
	errs := []error{err}
	prune := func(namespace string, kinds ...schema.GroupVersionKind) {
		pruned, err := w.applier.Prune(ctx, apply.OfTenant(tenant.Name), namespace, objects, kinds...)
		changes = append(changes, pruned...)
		errs = append(errs, err)
	}
	for _, namespace := range tenant.Namespaces {
		if err != nil {
			prune(namespace, apply.AccessKinds...)
			continue
		}
		prune(namespace, slices.Concat(apply.TenantKinds, watch.Among(apply.DialectKinds, served))...)
	}
	if err == nil {
		prune("", watch.Among(apply.ClusterDialectKinds, served)...)
	}
	return changes, errors.Join(errs...)
}
