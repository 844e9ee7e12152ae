// Package nodes is the wall that keeps each tenant on nodes of its own.
package nodes

import (
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/admissionpolicy"
	"croft.dev/croft/internal/estate"
)

// Wall is the nodes wall: pools that only their tenants' pods get onto, in four
// layers, each enough against a mistake in the others.
type Wall struct{}

// Name implements wall.Wall.
func (Wall) Name() string { return "nodes" }

// Platform returns the policies of placement that are not about pods.
func (Wall) Platform(p *estate.Platform) []client.Object {
	if p.Placement == v1alpha1.PlacementGatekeeper {
		check := placementConstraint(p)
		return slices.Concat(checkBinding().Objects(), checkCapacity().Objects(),
			[]client.Object{check.Template(), check.Constraint()})
	}
	return slices.Concat(placeDaemonSets(p.NodePoolKey).Objects(), checkBinding().Objects(), checkCapacity().Objects())
}

// Pods returns how pods are placed.
func (Wall) Pods(p *estate.Platform) admissionpolicy.Pods { return podPart(p) }

// Constraints are the checks that Gatekeeper holds too.
func (Wall) Constraints(p *estate.Platform) []admissionpolicy.Constrained {
	return []admissionpolicy.Constrained{placementConstraint(p)}
}

// Pool returns the pool's node class and its NodePool.
func (Wall) Pool(p *estate.Platform, pool *estate.Pool) []client.Object {
	return append(nodeClass(pool), nodePool(p, pool))
}

// Tenant returns nothing, since tenants' differences are in their TenantRules; only
// Gatekeeper has mutators for each.
func (Wall) Tenant(p *estate.Platform, t *estate.Tenant) []client.Object {
	if p.Placement != v1alpha1.PlacementGatekeeper {
		return nil
	}
	return mutators(p.NodePoolKey, t)
}
