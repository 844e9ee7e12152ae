// Package network is the wall that keeps tenants' traffic apart.
package network

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/internal/estate"
)

// Wall is the network wall: nothing comes in from other tenants, nothing goes
// out to the instance metadata address, and no policy of a tenant's own can
// change that.
type Wall struct{}

// Name implements wall.Wall.
func (Wall) Name() string { return "network" }

// Platform returns the floor under tenants' own policies.
func (Wall) Platform(p *estate.Platform) []client.Object { return floor(p.Admins).Objects() }

// Pool returns nothing: pods are told apart by namespace, not by node.
func (Wall) Pool(*estate.Platform, *estate.Pool) []client.Object { return nil }

// Tenant returns the policies of each of the tenant's namespaces.
func (Wall) Tenant(p *estate.Platform, t *estate.Tenant) []client.Object {
	var all []client.Object
	for _, namespace := range t.Namespaces {
		for _, policy := range policies(p, t) {
			policy.Namespace = namespace
			all = append(all, policy)
		}
	}
	return all
}
