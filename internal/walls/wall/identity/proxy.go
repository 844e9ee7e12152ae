package identity

import (
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/declare/rights"
)

// ProxyRole is the name of croft proxy's ClusterRole, and of its service account in croft's
// namespace.
const ProxyRole = "croft-proxy"

// constrained and constrainedOn are the verb prefixes of constrained impersonation in
// user-info mode, for users that are neither nodes nor service accounts (KEP-5284).
const constrained, constrainedOn = "impersonate:user-info", "impersonate-on:user-info:"

// buildProxyRights returns the ClusterRole of croft proxy and its binding, or nil if the Platform
// has no proxy.
func buildProxyRights(p *estate.Platform) []client.Object {
	if p.Proxy == nil {
		return nil
	}
	binding := buildClusterBinding(ProxyRole, nil)
	binding.Subjects = []rbacv1.Subject{{
		Kind: rbacv1.ServiceAccountKind, Namespace: v1alpha1.SystemNamespace, Name: ProxyRole,
	}}
	return []client.Object{
		&rbacv1.ClusterRole{
			TypeMeta: makeRBACMeta("ClusterRole"), ObjectMeta: metav1.ObjectMeta{Name: ProxyRole},
			Rules: buildProxyRules(p),
		},
		binding,
	}
}

// buildProxyRules let the proxy review service account tokens, watch namespaces, nodes, RBAC
// objects, Platforms, Pools and Tenants, and impersonate users. Any user name may be
// impersonated, because users are not known before they log in, but only the groups that the
// estate names: otherwise a stolen proxy token could impersonate system:masters, which
// constrained impersonation alone does not prevent.
func buildProxyRules(p *estate.Platform) []rbacv1.PolicyRule {
	rules := []rbacv1.PolicyRule{
		{APIGroups: []string{"authentication.k8s.io"}, Resources: []string{"tokenreviews"}, Verbs: []string{"create"}},
		{APIGroups: []string{""}, Resources: []string{"namespaces", "nodes"}, Verbs: rights.Read},
		{
			APIGroups: []string{v1alpha1.GroupVersion.Group},
			Resources: []string{"platforms", "pools", "tenants"}, Verbs: rights.Read,
		},
		{
			APIGroups: []string{rbacv1.GroupName},
			Resources: []string{"roles", "rolebindings", "clusterroles", "clusterrolebindings"}, Verbs: rights.Read,
		},
	}
	users, verb := "authentication.k8s.io", constrained
	if p.Proxy.Impersonation == v1alpha1.ImpersonationLegacy {
		users, verb = "", "impersonate"
	} else {
		rules = append(rules, buildConstrainedRules()...)
	}
	impersonate := func(group, resource string, names ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{
			APIGroups: []string{group}, Resources: []string{resource}, ResourceNames: names, Verbs: []string{verb},
		}
	}
	rules = append(rules, impersonate(users, "users"), impersonate("authentication.k8s.io", "uids"))
	for _, key := range ProxyExtras {
		rules = append(rules, impersonate("authentication.k8s.io", "userextras/"+key))
	}
	if len(p.Groups) > 0 {
		rules = append(rules, impersonate(users, "groups", p.Groups...))
	}
	return rules
}

// ProxyExtras has the keys of the extra values that the API server's own authenticators set.
var ProxyExtras = []string{"authentication.kubernetes.io/credential-id"}

// buildConstrainedRules allows every kind of request under impersonation.
func buildConstrainedRules() []rbacv1.PolicyRule {
	on := func(verbs ...string) []string {
		for i, v := range verbs {
			verbs[i] = constrainedOn + v
		}
		return verbs
	}
	return []rbacv1.PolicyRule{
		{
			APIGroups: []string{rbacv1.APIGroupAll}, Resources: []string{rbacv1.ResourceAll},
			Verbs: on("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"),
		},
		{
			NonResourceURLs: []string{rbacv1.NonResourceAll},
			Verbs:           on("get", "post", "put", "patch", "delete", "head", "options"),
		},
	}
}
