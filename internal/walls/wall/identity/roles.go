package identity

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/declare/rights"
)

// ClusterRoleName returns the name of the ClusterRole for a role in a Tenant's access. The
// RoleBindings to it have the same name.
func ClusterRoleName(role v1alpha1.Role) string {
	return rights.NameClusterRole(role)
}

// FindOwnRole returns the Platform's own role that a ClusterRole belongs to, if any.
func FindOwnRole(clusterRole string) (string, bool) {
	return strings.CutPrefix(clusterRole, rights.OwnRolePrefix)
}

// Roles are the roles that every Platform has.
var Roles = []v1alpha1.Role{v1alpha1.RoleViewer, v1alpha1.RoleOperator}

func buildClusterRoles(p *estate.Platform) []client.Object {
	all := []client.Object{
		buildClusterRole(v1alpha1.RoleViewer, rights.ForRole(v1alpha1.RoleViewer, &p.PlatformSpec)),
		buildClusterRole(v1alpha1.RoleOperator, rights.ForRole(v1alpha1.RoleOperator, &p.PlatformSpec)),
	}
	for _, name := range slices.Sorted(maps.Keys(p.Roles)) {
		all = append(all, buildClusterRole(v1alpha1.Role(name), convertOwnRules(p.Roles[name])))
	}
	return all
}

// convertOwnRules returns the rules of one of the Platform's own roles. They are a subset of the
// operator's, so every refusal for the operator applies to them.
func convertOwnRules(role v1alpha1.OwnRole) []rbacv1.PolicyRule {
	all := make([]rbacv1.PolicyRule, len(role.Rules))
	for i, r := range role.Rules {
		all[i] = rbacv1.PolicyRule{APIGroups: r.APIGroups, Resources: r.Resources, Verbs: r.Verbs}
	}
	return all
}

func buildClusterRole(role v1alpha1.Role, rules []rbacv1.PolicyRule) *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole"},
		ObjectMeta: metav1.ObjectMeta{Name: ClusterRoleName(role)},
		Rules:      rules,
	}
}

// buildRoleBindings returns a RoleBinding for each role in the tenant's access, in each namespace.
func buildRoleBindings(t *estate.Tenant) []client.Object {
	var all []client.Object
	for _, namespace := range t.Namespaces {
		for _, role := range listRoles(t) {
			subjects := listSubjects(t, role)
			if len(subjects) == 0 {
				continue
			}
			all = append(all, &rbacv1.RoleBinding{
				TypeMeta: metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "RoleBinding"},
				ObjectMeta: metav1.ObjectMeta{
					Namespace: namespace, Name: ClusterRoleName(role), Annotations: buildExpiryAnnotation(t, role),
				},
				Subjects: subjects,
				RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: ClusterRoleName(role)},
			})
		}
	}
	return all
}

// buildExpiryAnnotation returns an annotation of a RoleBinding with the subjects whose access expires, and the
// times. A RoleBinding itself has no expiry.
func buildExpiryAnnotation(t *estate.Tenant, role v1alpha1.Role) map[string]string {
	var all []string
	for _, a := range t.Access {
		if a.Role == role && a.Until != nil {
			all = append(all, cmp.Or(a.Group, a.User)+"="+a.Until.UTC().Format(time.RFC3339))
		}
	}
	if len(all) == 0 {
		return nil
	}
	return map[string]string{v1alpha1.UntilAnnotation: strings.Join(all, ", ")}
}

// listRoles returns the roles in a tenant's access, croft's own first.
func listRoles(t *estate.Tenant) []v1alpha1.Role {
	var own []v1alpha1.Role
	for _, a := range t.Access {
		if !slices.Contains(Roles, a.Role) {
			own = append(own, a.Role)
		}
	}
	slices.Sort(own)
	return slices.Concat(Roles, slices.Compact(own))
}

func listSubjects(t *estate.Tenant, role v1alpha1.Role) []rbacv1.Subject {
	var all []rbacv1.Subject
	for _, a := range t.Access {
		switch {
		case a.Role != role:
		case a.Group != "":
			all = append(all, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: a.Group})
		default:
			all = append(all, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: a.User})
		}
	}
	return all
}
