package adopt

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"croft.dev/croft/internal/operate/drift"
	"croft.dev/croft/internal/walls/wall"
)

// Pool is the change of a pool's nodes.
type Pool struct {
	Name string `json:"name"`
	// State describes whether the NodePool is new, unchanged, or changed.
	State string `json:"state"`
	// ReplacesNodes reports whether Karpenter may replace nodes with running pods.
	ReplacesNodes bool `json:"replaces,omitempty"`
}

// comparePools compares the existing NodePools with the NodePools of the tenant's pools.
func (a *Adoption) comparePools(ctx context.Context, p *Plan) error {
	var live karpenterv1.NodePoolList
	if err := a.client.List(ctx, &live); err != nil {
		if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
			p.Blockers = append(p.Blockers, "this cluster does not serve Karpenter's NodePool v1, of which croft's pools consist: install Karpenter 1.x")
			return nil
		}
		return err
	}
	key := a.estate.Platform.NodePoolKey
	for _, name := range a.tenant.Pools {
		for _, o := range wall.PoolObjects(&a.estate.Platform, a.estate.FindPool(name)) {
			if desired, ok := o.(*karpenterv1.NodePool); ok {
				i := slices.IndexFunc(live.Items, func(n karpenterv1.NodePool) bool { return n.Name == name })
				if i < 0 {
					p.Pools = append(p.Pools, Pool{Name: name, State: "is new: its nodes start for the first pods that are re-created"})
					continue
				}
				if reason := explainRefusal(&live.Items[i]); reason != "" {
					p.Blockers = append(p.Blockers, reason)
					continue
				}
				p.Pools = append(p.Pools, comparePool(&live.Items[i], desired))
			}
		}
		for i := range live.Items {
			other := &live.Items[i]
			if other.Name != name && other.Spec.Template.Labels[key] == name && !isOurs(other) {
				p.Pools = append(p.Pools, Pool{Name: name, State: "NodePool " + other.Name + ", which croft does not manage, also creates nodes of this pool (" + key + "=" + name +
					"): pods run on nodes of both; set the limits of that NodePool to 0, and delete it when its nodes are empty"})
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
	return fmt.Sprintf("NodePool %s has replicas, which Karpenter does not allow you to remove: give the pool another name in croft.yaml, such as %s-dynamic", live.Name, live.Name)
}

// comparePool returns the effect of changing a NodePool on its existing nodes.
func comparePool(live, desired *karpenterv1.NodePool) Pool {
	pool := Pool{Name: live.Name, State: "does not change"}
	effect := drift.Compare(drift.Pool{NodePool: live}, drift.Pool{NodePool: desired}, nil)
	drifts := len(effect.Fields) > 0
	switch {
	case drifts && !effect.HeldByBudget:
		pool.ReplacesNodes = true
		pool.State = `changes, and Karpenter REPLACES ITS NODES, so that their pods restart: write budgets: [{nodes: "10%"}, {nodes: "0", reasons: [Drifted]}] into the pool to keep them`
	case effect.Consolidates:
		pool.ReplacesNodes = true
		pool.State = "changes, and Karpenter GATHERS PODS ON FEWER NODES from now on (consolidation): write consolidation: WhenEmpty into the pool to leave them on their nodes"
	case drifts:
		pool.State = "changes for new nodes; its budget prevents the replacement of running nodes"
		if slices.Contains(effect.Fields, "taints") {
			pool.State += "; only new nodes get the new taints"
		}
	}
	return pool
}
