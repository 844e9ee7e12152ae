package proxy

import (
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiserver/pkg/authentication/user"
)

// TestVisibility evaluates roles and bindings as RBAC does: a user sees no more than they
// grant, and a list is forwarded only with a ClusterRoleBinding that grants list on all
// namespaces.
func TestVisibility(t *testing.T) {
	get := func(names ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"get"}, ResourceNames: names}
	}
	changed := func(change func(*rbacv1.PolicyRule)) rbacv1.PolicyRule {
		rule := get()
		change(&rule)
		return rule
	}
	list := func(names ...string) rbacv1.PolicyRule {
		return changed(func(r *rbacv1.PolicyRule) { r.Verbs, r.ResourceNames = []string{"list"}, names })
	}
	devs := rbacv1.Subject{Kind: rbacv1.GroupKind, Name: "devs"}
	for _, c := range []struct {
		about string
		// in is the namespace of the binding, or "" for a ClusterRoleBinding.
		in      string
		rule    rbacv1.PolicyRule
		subject rbacv1.Subject
		// kind is the role's kind in the binding; the existing role is a ClusterRole.
		kind string
		// want lists the namespaces of shop and bank that jane sees. It is "all" if the API
		// server answers her lists.
		want string
	}{
		{"get in a namespace", "shop", get(), devs, "", "shop"},
		{"get everywhere", "", get(), devs, "", "bank shop"},
		{"get of some names everywhere", "", get("shop"), devs, "", "shop"},
		{"get of its own name in a namespace", "shop", get("shop"), devs, "", "shop"},
		{"get of another's name in a namespace", "shop", get("bank"), devs, "", ""},
		{"list in a namespace", "shop", list(), devs, "", ""},
		{"list everywhere", "", list(), devs, "", "all"},
		{"list of some names everywhere", "", list("shop"), devs, "", ""},
		{"every verb", "shop", changed(func(r *rbacv1.PolicyRule) { r.Verbs = []string{"*"} }), devs, "", "shop"},
		{"another verb", "shop", changed(func(r *rbacv1.PolicyRule) { r.Verbs = []string{"update", "watch"} }), devs, "", ""},
		{"every API group", "shop", changed(func(r *rbacv1.PolicyRule) { r.APIGroups = []string{"*"} }), devs, "", "shop"},
		{"another API group", "shop", changed(func(r *rbacv1.PolicyRule) { r.APIGroups = []string{"apps"} }), devs, "", ""},
		{"every resource", "shop", changed(func(r *rbacv1.PolicyRule) { r.Resources = []string{"*"} }), devs, "", "shop"},
		{"a subresource", "shop", changed(func(r *rbacv1.PolicyRule) { r.Resources = []string{"namespaces/status"} }), devs, "", ""},
		{"a Role of the ClusterRole's name", "shop", get(), devs, "Role", ""},
		{"a user", "shop", get(), rbacv1.Subject{Kind: rbacv1.UserKind, Name: "jane"}, "", "shop"},
		{"a user of the group's name", "shop", get(), rbacv1.Subject{Kind: rbacv1.UserKind, Name: "devs"}, "", ""},
		{"a group of the user's name", "shop", get(), rbacv1.Subject{Kind: rbacv1.GroupKind, Name: "jane"}, "", ""},
		{"a service account of the user's name", "shop", get(), rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: "shop", Name: "jane"}, "", ""},
	} {
		v := newVisibility()
		kind := "ClusterRole"
		if c.kind != "" {
			kind = c.kind
		}
		v.setRole(roleKey{name: "given"}, []rbacv1.PolicyRule{c.rule})
		v.setBinding(c.in, "given", rbacv1.RoleRef{Kind: kind, Name: "given"}, []rbacv1.Subject{c.subject})
		if got := listVisible(v, jane); got != c.want {
			t.Errorf("%s: jane sees %q, want %q", c.about, got, c.want)
		}
		names, all := v.visibleTo(jane)
		for _, namespace := range []string{"shop", "bank"} {
			if (all || names.Has(namespace)) != v.canSee(jane, namespace) {
				t.Errorf("%s: visibleTo and canSee differ on %s", c.about, namespace)
			}
		}

		withdrawn := v.setBinding(c.in, "given", rbacv1.RoleRef{}, nil)
		if got := listVisible(v, jane); got != "" {
			t.Errorf("%s: without the binding jane sees %q", c.about, got)
		}
		// Users who could see a namespace receive its deletion.
		for _, namespace := range strings.Fields(c.want) {
			if namespace != "all" && !slices.Contains(withdrawn.listRevokedFor(namespace), toSubject(c.subject)) {
				t.Errorf("%s: the revocation of %s is not reported", c.about, namespace)
			}
		}
	}
}

// listVisible returns the namespaces of shop and bank that a user sees, or "all" for a user who
// may list them at the API server.
func listVisible(v *visibility, u user.Info) string {
	if v.canListAll(u) {
		return "all"
	}
	var seen []string
	for _, namespace := range []string{"bank", "shop"} {
		if v.canSee(u, namespace) {
			seen = append(seen, namespace)
		}
	}
	return strings.Join(seen, " ")
}
