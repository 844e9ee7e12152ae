package move

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
)

// FromAnnotation on a Tenant names the pool that its pods were last moved from, so that they
// can be moved back.
const FromAnnotation = "croft.dev/moved-from"

// findSourcePool returns the pool that a plan moves pods away from, or "" if there is none.
func findSourcePool(plan []Workload) string {
	for i := range plan {
		if plan[i].Way != Restart && plan[i].Way != Evict {
			continue
		}
		for _, s := range plan[i].Pods {
			if s.Pool != "" {
				return s.Pool
			}
		}
	}
	return ""
}

// RecordPool records the pool that a plan moves a tenant's pods away from.
func (m *Mover) RecordPool(ctx context.Context, plan []Workload) error {
	pool := findSourcePool(plan)
	if pool == "" {
		return nil
	}
	return patchTenant(ctx, m.client, m.tenant.Name, map[string]any{"metadata": map[string]any{"annotations": map[string]any{FromAnnotation: pool}}})
}

// RestorePool sets the tenant's pool to the one that its pods were last moved from, and returns its
// name.
func RestorePool(ctx context.Context, c client.Client, tenant *v1alpha1.Tenant) (string, error) {
	pool := tenant.Annotations[FromAnnotation]
	switch {
	case pool == "":
		return "", fmt.Errorf("tenant %s has no recorded move: write its pool into your file, run `croft apply`, and then `croft move tenant %s`", tenant.Name, tenant.Name)
	case len(tenant.Spec.Pools) > 0:
		return "", fmt.Errorf("tenant %s has several pools: restore them in your file, run `croft apply`, and then `croft move tenant %s`", tenant.Name, tenant.Name)
	}
	err := c.Get(ctx, client.ObjectKey{Name: pool}, &v1alpha1.Pool{})
	if apierrors.IsNotFound(err) {
		return "", fmt.Errorf("tenant %s was moved from pool %s, which no longer exists", tenant.Name, pool)
	}
	if err != nil {
		return "", err
	}
	return pool, patchTenant(ctx, c, tenant.Name, map[string]any{
		"metadata": map[string]any{"annotations": map[string]any{FromAnnotation: nil}},
		"spec":     map[string]any{"pool": pool},
	})
}

func patchTenant(ctx context.Context, c client.Client, name string, change map[string]any) error {
	patch, err := json.Marshal(change)
	if err != nil {
		return err
	}
	tenant := &v1alpha1.Tenant{}
	tenant.Name = name
	return c.Patch(ctx, tenant, client.RawPatch(types.MergePatchType, patch), client.FieldOwner("croft-move"))
}
