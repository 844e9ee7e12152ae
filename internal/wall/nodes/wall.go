// Package nodes is the wall that keeps each tenant on nodes of its own.
package nodes

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/internal/admission"
	"croft.dev/croft/internal/estate"
)

// Wall is the nodes wall: pools that only their tenants' pods get onto, in four
// layers, each enough against a mistake in the others.
type Wall struct{}

// Name implements wall.Wall.
func (Wall) Name() string { return "nodes" }

// Platform returns the policies of placement that are not about pods.
func (Wall) Platform(p *estate.Platform) []client.Object { return policies(p.NodePoolKey) }

// Pods returns how pods are placed.
func (Wall) Pods(p *estate.Platform) admission.Pods { return podPart(p.NodePoolKey) }

// Pool returns the pool's node class and its NodePool.
func (Wall) Pool(p *estate.Platform, pool *estate.Pool) []client.Object {
	return append(nodeClass(p, pool), nodePool(p, pool))
}

// Tenant returns nothing: what differs between tenants is in their TenantRules.
func (Wall) Tenant(*estate.Platform, *estate.Tenant) []client.Object { return nil }
