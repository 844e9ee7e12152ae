package policy

import (
	"slices"

	"croft.dev/croft/internal/declare/estate"
)

// listAllowedSubjects returns the subjects that a tenant's RoleBindings may bind: the tenant's users and
// groups, and the subjects of shareWith.
func listAllowedSubjects(t *estate.Tenant) []string {
	all := []string{}
	add := func(kind, name string) {
		if subject := kind + ":" + name; name != "" && !slices.Contains(all, subject) {
			all = append(all, subject)
		}
	}
	for _, a := range t.Access {
		add("Group", a.Group)
		add("User", a.User)
	}
	for _, s := range t.Allowances.ShareWith {
		add("Group", s.Group)
		add("User", s.User)
		add("ServiceAccount", s.ServiceAccount)
	}
	return all
}
