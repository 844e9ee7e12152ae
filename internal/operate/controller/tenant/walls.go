package tenant

import (
	"context"
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/operate/apply"
	"croft.dev/croft/internal/operate/controller/tenant/quota"
	"croft.dev/croft/internal/operate/controller/watch"
	"croft.dev/croft/internal/walls/wall"
)

// applyWalls applies the objects of all walls of a tenant, and deletes objects in its
// namespaces that are no longer desired. Revoked access is deleted at once, other objects
// only after their replacement is in place: during a change of dialect, a wall exists in
// both. A namespace that cannot be written, such as another tenant's, does not delay this in
// the others. The quota's division decides which objects are written. Dialects that the cluster
// does not serve are skipped. If it does not serve the kinds of Flux or Multus, the
// tenant's sources or networks are skipped, and people get access nevertheless.
func (c *Controller) applyWalls(ctx context.Context, platform *estate.Platform, division *quota.Division, served []schema.GroupVersionKind) ([]apply.Change, error) {
	tenant := division.Tenant
	objects := wall.TenantObjects(platform, tenant)
	writable := division.SelectWritable(omitUnserved(objects, served))
	applied, err := c.applier.Apply(ctx, writable...)
	// Without an outcome for each object, Apply has ended early.
	isComplete := len(applied) == len(writable)
	changes, errs := applied, []error{err}
	prune := func(owner apply.Owner, namespace string, kinds ...schema.GroupVersionKind) {
		pruned, err := c.applier.Prune(ctx, owner, namespace, objects, kinds...)
		changes = append(changes, pruned...)
		errs = append(errs, err)
	}
	for _, namespace := range tenant.Namespaces {
		owner := apply.OfTenant(tenant.Name)
		if isOwned(applied, namespace) {
			owner = apply.OfAnyTenant() // it may have belonged to another tenant before
		}
		if !isComplete || hasFailed(applied, namespace) {
			prune(owner, namespace, apply.AccessKinds...)
			continue
		}
		prune(owner, namespace, slices.Concat(apply.TenantKinds, watch.Intersect(slices.Concat(apply.OptionalKinds, apply.DialectKinds), served))...)
	}
	if err == nil {
		prune(apply.OfTenant(tenant.Name), "", watch.Intersect(apply.ClusterDialectKinds, served)...)
	}
	return changes, errors.Join(errs...)
}

// hasFailed reports whether an object that belongs to a namespace, or to all of them, could not be
// written.
func hasFailed(changes []apply.Change, namespace string) bool {
	return slices.ContainsFunc(changes, func(c apply.Change) bool {
		in := c.Namespace
		if c.Kind == "Namespace" {
			in = c.Name
		}
		return c.Err != nil && (in == namespace || in == "")
	})
}

// isOwned reports whether a namespace belongs to the tenant.
func isOwned(changes []apply.Change, namespace string) bool {
	return slices.ContainsFunc(changes, func(c apply.Change) bool {
		return c.Kind == "Namespace" && c.Name == namespace && c.Err == nil
	})
}
