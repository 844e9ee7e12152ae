package copies

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"

	"croft.dev/croft/internal/adoption/migrate/draft"
	"croft.dev/croft/internal/adoption/migrate/kubernetes"
	"croft.dev/croft/internal/adoption/migrate/source"
	"croft.dev/croft/internal/declare/rights"
)

// Expand returns a text in the form that it has for a tenant.
type Expand func(text, tenant string) string

// ReadPeople gives the people of a RoleBinding access to tenants, since the objects of croft.yaml bind only service
// accounts. It returns the ClusterRole of croft that is similar to the role of the binding, or "", and the
// difference.
func ReadPeople(d *draft.Draft, binding source.Field, tenants []string, expand Expand) (role, why string) {
	ref := binding.At("roleRef")
	like, why := kubernetes.MatchRole(d, ref.At("kind").Text(), binding.Object().Namespace, ref.At("name").Text())
	prefix := kubernetes.FindGroupPrefix(d)
	for _, s := range binding.At("subjects").Items() {
		if isAccount(s.Value()) {
			continue
		}
		for _, name := range tenants {
			person := s.WithValue(map[string]any{"kind": s.At("kind").Text(), "name": expand(s.At("name").Text(), name)})
			kubernetes.AddSubject(d, name, person, prefix, like, why)
		}
	}
	if like == "" {
		return "", why
	}
	return rights.NameClusterRole(like), why
}

// HasAccounts reports whether a RoleBinding binds service accounts.
func HasAccounts(binding source.Field) bool {
	return slices.ContainsFunc(binding.At("subjects").Items(), func(s source.Field) bool { return isAccount(s.Value()) })
}

func isAccount(subject any) bool {
	fields, _ := subject.(map[string]any)
	return fields["kind"] == rbacv1.ServiceAccountKind
}

// BindAccounts leaves only service accounts in the manifest of a RoleBinding, and binds them to a ClusterRole, unless it
// is empty.
func BindAccounts(manifest map[string]any, role string) {
	subjects, _ := manifest["subjects"].([]any)
	manifest["subjects"] = slices.DeleteFunc(slices.Clone(subjects), func(s any) bool { return !isAccount(s) })
	if role != "" {
		manifest["roleRef"] = map[string]any{"apiGroup": rbacv1.GroupName, "kind": "ClusterRole", "name": role}
	}
}

// ReportRole accounts for the service accounts of a RoleBinding, and for the role to which croft.yaml binds them.
func ReportRole(binding source.Field, to []string, role, why string) {
	ref := binding.At("roleRef")
	for _, field := range to {
		for _, s := range binding.At("subjects").Items() {
			if isAccount(s.Value()) {
				s.MarkKept(field)
			}
		}
		if role == "" || role == ref.At("name").Text() {
			ref.MarkKept(field)
		} else {
			ref.MarkChanged(field, "%s; delete the existing bindings of this name first, since the API server does not change the role of a binding", why)
		}
	}
}
