package consequence

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/adoption/move"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/declare/wording"
)

// describeTenant returns the consequences for one tenant. after is nil if it is deleted.
func describeTenant(estateBefore *estate.Estate, before, after *estate.Tenant, facts Facts) []Consequence {
	object := "Tenant/" + before.Name
	all := describeLostAccess(object, before, after)
	for i := range facts.Namespaces {
		n := &facts.Namespaces[i]
		if policy, leaves := findDeletionPolicy(n, before, after); leaves {
			all = append(all, Consequence{Namespaces, object, DescribeWithdrawal(n, policy, len(filterPods(facts.Pods, n.Name)))})
		}
	}
	if after == nil || slices.Equal(before.Pools, after.Pools) {
		return all
	}
	counts := countMisplacedPods(estateBefore.Platform.NodePoolKey, after, facts)
	for _, pool := range slices.Sorted(maps.Keys(counts)) {
		n := counts[pool]
		all = append(all, Consequence{Pods, object, fmt.Sprintf("%s of tenant %s stay%s on nodes of pool %s until re-created: croft move tenant %[2]s",
			wording.FormatCount(n, "pod"), before.Name, conjugateVerb(n), pool)})
	}
	return all
}

// findDeletionPolicy reports whether a namespace is withdrawn from its tenant, and by which policy. A
// namespace that was retained earlier is withdrawn when the policy becomes Delete.
func findDeletionPolicy(n *corev1.Namespace, before, after *estate.Tenant) (v1alpha1.DeletionPolicy, bool) {
	switch {
	case n.Labels[v1alpha1.TenantLabel] != before.Name, n.DeletionTimestamp != nil:
		return "", false
	case after == nil:
		return before.Deletion, true
	case slices.Contains(after.Namespaces, n.Name):
		return "", false
	default:
		return after.Deletion, after.Deletion == v1alpha1.DeletionDelete || slices.Contains(before.Namespaces, n.Name)
	}
}

// countMisplacedPods counts the pods of a tenant that run on nodes of other pools than its own, by these
// pools.
func countMisplacedPods(key string, tenant *estate.Tenant, facts Facts) map[string]int {
	counts := map[string]int{}
	for _, namespace := range tenant.Namespaces {
		for _, stray := range move.FindMisplaced(key, tenant.Pools, filterPods(facts.Pods, namespace), facts.Nodes) {
			counts[stray.Pool]++
		}
	}
	return counts
}

func filterPods(pods []corev1.Pod, namespace string) []corev1.Pod {
	return slices.DeleteFunc(slices.Clone(pods), func(p corev1.Pod) bool { return p.Namespace != namespace })
}

// DescribeWithdrawal describes the effect on a namespace that is withdrawn from its tenant, or whose
// tenant is deleted.
func DescribeWithdrawal(n *corev1.Namespace, policy v1alpha1.DeletionPolicy, pods int) string {
	inside := wording.FormatCount(pods, "pod")
	switch {
	case policy != v1alpha1.DeletionDelete:
		return fmt.Sprintf("namespace %s stays, with its %s and its walls", n.Name, inside)
	case n.Annotations[v1alpha1.CreatedAnnotation] != "":
		return fmt.Sprintf("namespace %s is DELETED with all its objects, including its %s and volume claims", n.Name, inside)
	default:
		return fmt.Sprintf("namespace %s, which croft adopted, stays with its %s, and loses its walls", n.Name, inside)
	}
}

// describeLostAccess lists the users and groups that lose some or all of their access to a tenant.
func describeLostAccess(object string, before, after *estate.Tenant) []Consequence {
	var all []Consequence
	var lost []string
	for _, person := range listPeople(before.Access) {
		was, will := listRoles(person, before.Access), []v1alpha1.Role(nil)
		if after != nil {
			will = listRoles(person, after.Access)
		}
		switch {
		case len(will) == 0:
			lost = append(lost, person)
		case slices.ContainsFunc(was, func(r v1alpha1.Role) bool { return !includesRole(will, r) }):
			all = append(all, Consequence{Access, object, fmt.Sprintf("%s has the role %s of tenant %s from now on, and no longer %s", person, joinRoles(will), before.Name, joinRoles(was))})
		}
	}
	if len(lost) > 0 {
		all = append(all, Consequence{Access, object, fmt.Sprintf("%s lose%s the access to tenant %s: %s", formatHolders(len(lost)), conjugateVerb(len(lost)), before.Name, wording.FormatFirst(lost, mostNames))})
	}
	return all
}

// includesRole reports whether roles have all rights of another: an operator has a viewer's.
func includesRole(roles []v1alpha1.Role, other v1alpha1.Role) bool {
	return slices.Contains(roles, other) || other == v1alpha1.RoleViewer && slices.Contains(roles, v1alpha1.RoleOperator)
}

// listPeople returns the users and groups with access, in the order of their declaration.
func listPeople(access []v1alpha1.Access) []string {
	var all []string
	for _, a := range access {
		if name := formatPerson(a); !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	return all
}

func formatPerson(a v1alpha1.Access) string {
	if a.Group != "" {
		return "group " + a.Group
	}
	return "user " + a.User
}

func listRoles(name string, access []v1alpha1.Access) []v1alpha1.Role {
	var roles []v1alpha1.Role
	for _, a := range access {
		if formatPerson(a) == name {
			roles = append(roles, a.Role)
		}
	}
	slices.Sort(roles)
	return slices.Compact(roles)
}

func joinRoles(roles []v1alpha1.Role) string {
	names := make([]string, len(roles))
	for i, r := range roles {
		names[i] = string(r)
	}
	return strings.Join(names, ", ")
}

// formatHolders counts users and groups.
func formatHolders(n int) string {
	if n == 1 {
		return "1 user or group"
	}
	return fmt.Sprintf("%d users and groups", n)
}

// conjugateVerb returns the ending of a verb with a singular subject.
func conjugateVerb(n int) string {
	if n == 1 {
		return "s"
	}
	return ""
}
