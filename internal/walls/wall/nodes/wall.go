// Package nodes is the wall that runs each tenant's pods on the tenant's own nodes.
package nodes

import (
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/rules/admissionpolicy"
)

// Wall is the nodes wall: pools that only their tenants' pods can run on, in four layers. Each
// layer alone is enough if the others have a mistake.
type Wall struct{}

// Name implements wall.Wall.
func (Wall) Name() string { return "nodes" }

// Platform returns the policies of placement other than the shared policies on pods.
func (Wall) Platform(p *estate.Platform) []client.Object {
	if p.Placement == v1alpha1.PlacementGatekeeper {
		check := buildPlacementConstraint(p)
		return slices.Concat(checkBinding().Objects(), checkCapacity().Objects(),
			[]client.Object{check.Template(), check.Constraint()})
	}
	return slices.Concat(placeDaemonSets(p.NodePoolKey).Objects(), checkBinding().Objects(), checkCapacity().Objects())
}

// Pods returns the placement of pods, as mutations and rules.
func (Wall) Pods(p *estate.Platform) admissionpolicy.Pods { return buildPodPart(p) }

// Constraints returns the rules that Gatekeeper enforces, too.
func (Wall) Constraints(p *estate.Platform) []admissionpolicy.Constrained {
	return []admissionpolicy.Constrained{buildPlacementConstraint(p)}
}

// Pool returns the pool's node class and its NodePool.
func (Wall) Pool(p *estate.Platform, pool *estate.Pool) []client.Object {
	return append(buildNodeClass(pool), buildNodePool(p, pool))
}

// Tenant returns nothing, since tenants differ only in their TenantRules. With Gatekeeper it
// returns the tenant's mutators.
func (Wall) Tenant(p *estate.Platform, t *estate.Tenant) []client.Object {
	if p.Placement != v1alpha1.PlacementGatekeeper {
		return nil
	}
	return buildMutators(p.NodePoolKey, t)
}
