// Package identity is the wall that gives each person the rights they need in
// their own tenant's namespaces, and none elsewhere.
package identity

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/internal/estate"
)

// Wall is the identity wall: two roles, bound to groups of the identity
// provider, namespace by namespace; and the roles of the platform's own people,
// bound for the whole cluster.
type Wall struct{}

// Name implements wall.Wall.
func (Wall) Name() string { return "identity" }

// Platform returns the tenants' two roles, and the platform's with their bindings.
func (Wall) Platform(p *estate.Platform) []client.Object {
	return append(roles(p), platformRoles(p)...)
}

// Pool returns nothing: no tenant may see or touch a pool.
func (Wall) Pool(*estate.Platform, *estate.Pool) []client.Object { return nil }

// Tenant returns the bindings in each of the tenant's namespaces.
func (Wall) Tenant(_ *estate.Platform, t *estate.Tenant) []client.Object { return bindings(t) }
