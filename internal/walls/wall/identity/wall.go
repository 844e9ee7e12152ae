// Package identity is the wall that grants each user permissions in the namespaces of the
// user's own tenant, and nowhere else.
package identity

import (
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/walls/gitops"
)

// Wall is the identity wall. It binds two roles to groups of the identity provider, namespace
// by namespace, and the roles of the platform's own users in the whole cluster.
type Wall struct{}

// Name implements wall.Wall.
func (Wall) Name() string { return "identity" }

// Platform returns the tenants' two roles, the platform's roles with their bindings, the
// proxy's role, and the objects for elevations and requests for namespaces.
func (w Wall) Platform(p *estate.Platform) []client.Object {
	all := slices.Concat(buildClusterRoles(p), buildPlatformRoles(p), buildProxyRights(p), buildElevatedRole(p))
	for _, policy := range w.Policies(p) {
		all = append(all, policy.Objects()...)
	}
	return all
}

// Pool returns nothing: no tenant may read or change a pool.
func (Wall) Pool(*estate.Platform, *estate.Pool) []client.Object { return nil }

// Tenant returns the bindings in each of the tenant's namespaces, among them those for copies of
// Secrets, and the objects that apply its sources.
func (Wall) Tenant(p *estate.Platform, t *estate.Tenant) []client.Object {
	sources := gitops.Objects(p, t, ClusterRoleName(v1alpha1.RoleOperator))
	return slices.Concat(buildRoleBindings(t), buildSecretBindings(t), sources)
}
