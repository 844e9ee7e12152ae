package pool

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/operate/apply"
	"croft.dev/croft/internal/operate/controller/declared"
	"croft.dev/croft/internal/operate/controller/owner"
	"croft.dev/croft/internal/rules/admissionpolicy"
)

// recheck is how often a pool that is being deleted is reconciled: no event reports that a
// retained namespace, or the last node, was deleted.
const recheck = 15 * time.Second

// finalizePool deletes the objects of a pool that no tenant uses, and then removes the Pool's
// finalizer. Karpenter drains the nodes of a NodePool before its deletion completes. If
// there are retained namespaces, it deletes nothing and returns them, each with its tenant.
func (c *Controller) finalizePool(ctx context.Context, pool *v1alpha1.Pool) (retained []string, err error) {
	if !controllerutil.ContainsFinalizer(pool, v1alpha1.PoolFinalizer) {
		return nil, nil
	}
	// A pool of the same name may have been created since.
	if err := owner.Check(ctx, c.reader, string(declared.Pool), pool, v1alpha1.PoolFinalizer); err != nil {
		return nil, err
	}
	if retained, err = c.listRetained(ctx, pool.Name); err != nil || len(retained) > 0 {
		return retained, err
	}
	if _, err := c.live.Prune(ctx, apply.OfPool(pool.Name), "", nil, slices.Concat(apply.PoolKinds, apply.ReadinessKinds)...); err != nil {
		return nil, err
	}
	delete(c.appliedRevisions, pool.Name)
	before := pool.DeepCopy()
	controllerutil.RemoveFinalizer(pool, v1alpha1.PoolFinalizer)
	return nil, owner.PatchFinalizers(ctx, c.client, pool, before)
}

// listRetained returns the namespaces of deleted tenants whose pods belong to the pool, if the
// pool has nodes. The workloads of such a tenant remain, and have no other nodes. This also
// protects tenants and pools that are deleted together by accident.
func (c *Controller) listRetained(ctx context.Context, pool string) ([]string, error) {
	claims := &karpenterv1.NodeClaimList{}
	err := c.reader.List(ctx, claims, client.MatchingLabels{karpenterv1.NodePoolLabelKey: pool}, client.Limit(1))
	if meta.IsNoMatchError(err) || err == nil && len(claims.Items) == 0 {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list NodeClaims: %w", err)
	}
	var namespaces corev1.NamespaceList
	if err := c.reader.List(ctx, &namespaces, client.HasLabels{v1alpha1.TenantLabel}); err != nil {
		return nil, fmt.Errorf("list namespaces: %w", err)
	}
	var names []string
	for _, n := range admissionpolicy.FindNamespacesOnPool(pool, namespaces.Items) {
		names = append(names, n.Name+" (of tenant "+n.Labels[v1alpha1.TenantLabel]+")")
	}
	return names, nil
}
