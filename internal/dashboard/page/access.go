package page

import (
	"cmp"
	"slices"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/rights"
	"croft.dev/croft/internal/declare/wording"
	"croft.dev/croft/internal/diagnose/me"
	"croft.dev/croft/internal/walls/wall/identity"
)

// NewAccess returns the page of the access to a namespace.
func NewAccess(namespace string, m *me.Me, bindings []rbacv1.RoleBinding) Page {
	others := Section{
		Heading: T("Who has access"), Head: listHeads("Subject", "Role", "May"),
		Note:  T("By RoleBindings of this namespace. Platform admins and cluster administrators have access in addition."),
		Empty: T("There are no RoleBindings: a platform admin declares access of the Tenant."),
	}
	for _, g := range listGrants(bindings) {
		may := Cell{Text: g.may}
		if g.may == "" {
			may.PageText = T("see kubectl describe %s", g.role)
		}
		others.Rows = append(others.Rows, []Cell{{Text: g.subject}, {Text: g.role}, may})
	}
	you := Section{Heading: T("Your access"), Note: T("You are %s, in the groups %s.", m.User, wording.JoinNames(m.Groups))}
	for _, n := range m.Namespaces {
		if n.Name == namespace {
			if !n.MayList("rolebindings") {
				others.Empty = T("You may not list the RoleBindings of this namespace.")
			}
			you.Head = listHeads("Your roles", "You may")
			you.Rows = [][]Cell{{{Text: wording.JoinNames(n.Roles)}, {Text: wording.JoinNames(n.Abilities)}}}
		}
	}
	body := Sections{you, others, linkElevations(namespace)}
	if len(m.Restrictions) > 0 {
		body = append(body, listRestrictions(m))
	}
	return Page{
		Title: T("Access to %s", namespace), Heading: T("Access to %s", namespace), Namespace: namespace, Tab: TabAccess,
		Commands: []string{"croft me -n " + namespace, "kubectl get rolebindings -n " + namespace + " -o wide", "kubectl auth can-i --list -n " + namespace},
		Body:     body,
	}
}

func linkElevations(namespace string) Section {
	return Section{Heading: T("More rights for a limited time"), Head: listHeads("Page", "Shows"), Rows: [][]Cell{
		{{PageText: T("Elevations"), Link: ElevationsPath(namespace)}, {PageText: T("requests for the role operator, their approval, and their end")}},
	}}
}

// grant is the access of one subject by one role. may is empty for a role that is not croft's.
type grant struct{ subject, role, may string }

func listGrants(bindings []rbacv1.RoleBinding) []grant {
	var all []grant
	for i := range bindings {
		b := &bindings[i]
		for _, s := range b.Subjects {
			name := s.Kind + " " + s.Name
			if s.Kind == rbacv1.ServiceAccountKind {
				name = s.Kind + " " + s.Namespace + "/" + s.Name
			}
			all = append(all, grant{name, b.RoleRef.Kind + " " + b.RoleRef.Name, describeRole(b.RoleRef)})
		}
	}
	slices.SortFunc(all, func(a, b grant) int { return cmp.Or(cmp.Compare(a.subject, b.subject), cmp.Compare(a.role, b.role)) })
	return slices.Compact(all)
}

// describeRole returns the abilities of croft's roles. Other roles may have any rights, so it returns none.
func describeRole(r rbacv1.RoleRef) string {
	of := map[v1alpha1.Role][]rbacv1.PolicyRule{v1alpha1.RoleViewer: rights.Viewer(), v1alpha1.RoleOperator: rights.Operator()}
	for _, role := range identity.Roles {
		if r.Kind == "ClusterRole" && r.Name == identity.ClusterRoleName(role) {
			var rules []authorizationv1.ResourceRule
			for _, rule := range of[role] {
				rules = append(rules, authorizationv1.ResourceRule{APIGroups: rule.APIGroups, Resources: rule.Resources, Verbs: rule.Verbs})
			}
			return wording.JoinNames(me.ListAbilities(rules))
		}
	}
	return ""
}
