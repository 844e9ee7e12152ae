package adopt

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"croft.dev/croft/internal/drift"
	"croft.dev/croft/internal/wall"
)

// Pool is the change of a pool's nodes.
type Pool struct {
	Name string `json:"name"`
	// Is describes whether the NodePool is new, unchanged, or changed.
	Is string `json:"is"`
	// Replaces reports whether Karpenter may replace nodes with running pods.
	Replaces bool `json:"replaces,omitempty"`
}

// comparePools compares the existing NodePools with the NodePools of the tenant's pools.
func (a *Adoption) comparePools(ctx context.Context, p *Plan) error {
	var live karpenterv1.NodePoolList
	if err := a.client.List(ctx, &live); err != nil {
		if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
			p.Blocking = append(p.Blocking, "this cluster has no NodePools of Karpenter v1: croft's pools are made of them")
			return nil
		}
		return err
	}
	key := a.estate.Platform.NodePoolKey
	for _, name := range a.tenant.Pools {
		for _, o := range wall.PoolObjects(&a.estate.Platform, a.estate.FindPool(name)) {
			if wanted, ok := o.(*karpenterv1.NodePool); ok {
				i := slices.IndexFunc(live.Items, func(n karpenterv1.NodePool) bool { return n.Name == name })
				if i < 0 {
					p.Pools = append(p.Pools, Pool{Name: name, Is: "new: its nodes come with the first pods that are made anew"})
					continue
				}
				if why := explainRefusal(&live.Items[i]); why != "" {
					p.Blocking = append(p.Blocking, why)
					continue
				}
				p.Pools = append(p.Pools, comparePool(&live.Items[i], wanted))
			}
		}
		for i := range live.Items {
			other := &live.Items[i]
			if other.Name != name && other.Spec.Template.Labels[key] == name && !isOurs(other) {
				p.Pools = append(p.Pools, Pool{Name: name, Is: "NodePool " + other.Name + ", which croft does not manage, makes nodes of this pool too (" + key + "=" + name +
					"): pods go on either; set its limits to 0 and delete it when its nodes are empty"})
			}
		}
	}
	return nil
}

// explainRefusal returns why Karpenter refuses every change of a NodePool into a croft pool, or "" if
// it does not.
func explainRefusal(live *karpenterv1.NodePool) string {
	if live.Spec.Replicas == nil {
		return ""
	}
	return fmt.Sprintf("NodePool %s has replicas, and Karpenter refuses to take them away: give the pool another name in croft.yaml, such as %s-dynamic", live.Name, live.Name)
}

// comparePool returns the effect of changing a NodePool on its existing nodes.
func comparePool(live, wanted *karpenterv1.NodePool) Pool {
	pool := Pool{Name: live.Name, Is: "stays as it is"}
	effect := drift.Compare(drift.Pool{NodePool: live}, drift.Pool{NodePool: wanted}, nil)
	drifts := len(effect.Fields) > 0
	switch {
	case drifts && !effect.Held:
		pool.Replaces = true
		pool.Is = `changes, and Karpenter REPLACES ITS NODES, so that their pods restart: write budgets: [{nodes: "10%"}, {nodes: "0", reasons: [Drifted]}] to it to keep them`
	case effect.Gathers:
		pool.Replaces = true
		pool.Is = "changes, and Karpenter GATHERS PODS ON FEWER NODES from now on (consolidation): write consolidation: WhenEmpty to it to leave them where they are"
	case drifts:
		pool.Is = "changes for nodes to come; its budget keeps those that run from being replaced"
		if slices.Contains(effect.Fields, "taints") {
			pool.Is += "; the new taints come on new nodes only"
		}
	}
	return pool
}
