package tenant

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

// applyWalls applies what all walls want for a tenant, and deletes from its
// namespaces what they want no longer. Access that was taken away goes at once;
// anything else only once what replaces it stands: so a wall that is written in
// another dialect stands twice before it stands in that one alone. Of the objects,
// those are written that the quota's division lets through; of the dialects, those
// are looked through that the cluster serves. Of a tenant's sources nothing is written
// where the cluster does not serve Flux' kinds: that keeps nobody out.
func (c *Controller) applyWalls(ctx context.Context, platform *estate.Platform, division *quota.Division, served []schema.GroupVersionKind) ([]apply.Change, error) {
	tenant := division.Tenant
	objects := wall.TenantObjects(platform, tenant)
	changes, err := c.applier.Apply(ctx, division.Ready(withoutUnserved(objects, served))...)
	errs := []error{err}
	prune := func(namespace string, kinds ...schema.GroupVersionKind) {
		owner := apply.OfTenant(tenant.Name)
		if namespace != "" {
			owner = apply.OfAnyTenant() // the namespace may have been another's before
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
		prune(namespace, slices.Concat(apply.TenantKinds, watch.Among(slices.Concat(apply.SourceKinds, apply.DialectKinds), served))...)
	}
	if err == nil {
		prune("", watch.Among(apply.ClusterDialectKinds, served)...)
	}
	return changes, errors.Join(errs...)
}
