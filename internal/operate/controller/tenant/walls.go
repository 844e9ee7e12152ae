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
// both. The quota's division decides which objects are written. Dialects that the cluster
// does not serve are skipped. If it does not serve the kinds of Flux or Multus, the
// tenant's sources or networks are skipped, and people get access nevertheless.
func (c *Controller) applyWalls(ctx context.Context, platform *estate.Platform, division *quota.Division, served []schema.GroupVersionKind) ([]apply.Change, error) {
	tenant := division.Tenant
	objects := wall.TenantObjects(platform, tenant)
	changes, err := c.applier.Apply(ctx, division.SelectWritable(omitUnserved(objects, served))...)
	errs := []error{err}
	prune := func(namespace string, kinds ...schema.GroupVersionKind) {
		owner := apply.OfTenant(tenant.Name)
		if namespace != "" {
			owner = apply.OfAnyTenant() // the namespace may have belonged to another tenant before
		}
		pruned, err := c.applier.Prune(ctx, owner, namespace, objects, kinds...)
		changes = append(changes, pruned...)
		errs = append(errs, err)
	}
	for _, namespace := range tenant.Namespaces {
		if err != nil {
			prune(namespace, apply.AccessKinds...)
			continue
		}
		prune(namespace, slices.Concat(apply.TenantKinds, watch.Intersect(slices.Concat(apply.OptionalKinds, apply.DialectKinds), served))...)
	}
	if err == nil {
		prune("", watch.Intersect(apply.ClusterDialectKinds, served)...)
	}
	return changes, errors.Join(errs...)
}
