package estate

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/rights"
)

// builtinRoles are the roles that every Platform has.
var builtinRoles = []string{string(v1alpha1.RoleViewer), string(v1alpha1.RoleOperator)}

// checkRoles refuses roles with more rights than the role operator. So every
// request that a wall refuses to operators is refused to every role.
func checkRoles(p *v1alpha1.PlatformSpec) []finding {
	within := slices.Concat(rights.Operator(), rights.Addons(p.Addons, true))
	var all []finding
	for _, name := range slices.Sorted(maps.Keys(p.Roles)) {
		at := field.NewPath("spec", "roles", name)
		if slices.Contains(builtinRoles, name) {
			all = append(all, makeFinding(at, "%s is a role of croft; give your role another name", name)...)
		}
		for i, rule := range p.Roles[name].Rules {
			if more := rights.FindUngranted(rule, within); more != "" {
				all = append(all, makeFinding(at.Child("rules").Index(i),
					"the role operator does not have the right to %s; remove it, or, for a kind of an add-on, name it in addons", more)...)
			}
		}
	}
	return all
}

// checkAccessRoles refuses access with a role that the Platform does not have.
func checkAccessRoles(w *checker, t *v1alpha1.Tenant) []finding {
	if !w.hasPlatform() {
		return nil
	}
	known := slices.Concat(builtinRoles, slices.Sorted(maps.Keys(w.platform.Roles)))
	var all []finding
	for i, a := range t.Spec.Access {
		if !slices.Contains(known, string(a.Role)) {
			all = append(all, makeFinding(field.NewPath("spec", "access").Index(i).Child("role"), "there is no role %s; write one of %s, or declare it in platform.roles",
				a.Role, strings.Join(known, ", "))...)
		}
	}
	return all
}
