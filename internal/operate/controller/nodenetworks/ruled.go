package nodenetworks

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/walls/wall/nodes"
)

// kindWatcher starts watches of kinds as soon as the cluster serves them, and returns the
// watched kinds.
type kindWatcher interface {
	Look(ctx context.Context, needed ...schema.GroupVersionKind) ([]schema.GroupVersionKind, error)
}

// listRuledPools returns the pools from whose nodes the node readiness controller removes the taint:
// those with a rule that is not being deleted.
func (c *Controller) listRuledPools(ctx context.Context) (map[string]bool, error) {
	if watched, err := c.rules.Look(ctx); err != nil || len(watched) == 0 {
		return nil, err
	}
	rules := &unstructured.UnstructuredList{}
	rules.SetGroupVersionKind(nodes.ReadinessRule.GroupVersion().WithKind(nodes.ReadinessRule.Kind + "List"))
	if err := c.client.List(ctx, rules, client.MatchingLabels{v1alpha1.ManagedByLabel: v1alpha1.ManagedBy}); err != nil {
		return nil, fmt.Errorf("list NodeReadinessRules: %w", err)
	}
	pools := map[string]bool{}
	for i := range rules.Items {
		if pool := rules.Items[i].GetLabels()[v1alpha1.PoolLabel]; pool != "" && rules.Items[i].GetDeletionTimestamp() == nil {
			pools[pool] = true
		}
	}
	return pools, nil
}
