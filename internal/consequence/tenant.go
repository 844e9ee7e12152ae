package consequence

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/estate"
	"croft.dev/croft/internal/move"
)

// ofTenant returns the consequences for one tenant. after is nil if it is deleted.
func ofTenant(estateBefore *estate.Estate, before, after *estate.Tenant, facts Facts) []Consequence {
	object := "Tenant/" + before.Name
	all := accessLost(object, before, after)
	for i := range facts.Namespaces {
		n := &facts.Namespaces[i]
		if policy, leaves := leaving(n, before, after); leaves {
			all = append(all, Consequence{Namespaces, object, Withdrawn(n, policy, len(podsIn(facts.Pods, n.Name)))})
		}
	}
	if after == nil || slices.Equal(before.Pools, after.Pools) {
		return all
	}
	counts := staying(estateBefore.Platform.NodePoolKey, after, facts)
	for _, pool := range slices.Sorted(maps.Keys(counts)) {
		n := counts[pool]
		all = append(all, Consequence{Pods, object, fmt.Sprintf("%s of tenant %s stay%s on nodes of pool %s until re-created: croft move tenant %[2]s",
			count(n, "pod"), before.Name, third(n), pool)})
	}
	return all
}

// leaving reports whether a namespace is withdrawn from its tenant, and by which policy. A
// namespace that was retained earlier is withdrawn when the policy becomes Delete.
func leaving(n *corev1.Namespace, before, after *estate.Tenant) (v1alpha1.DeletionPolicy, bool) {
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

// staying counts the pods of a tenant that run on nodes of other pools than its own, by these
// pools.
func staying(key string, tenant *estate.Tenant, facts Facts) map[string]int {
	counts := map[string]int{}
	for _, namespace := range tenant.Namespaces {
		for _, stray := range move.Strays(key, tenant.Pools, podsIn(facts.Pods, namespace), facts.Nodes) {
			counts[stray.Pool]++
		}
	}
	return counts
}

func podsIn(pods []corev1.Pod, namespace string) []corev1.Pod {
	return slices.DeleteFunc(slices.Clone(pods), func(p corev1.Pod) bool { return p.Namespace != namespace })
}

// Withdrawn describes the effect on a namespace that is withdrawn from its tenant, or whose
// tenant is deleted.
func Withdrawn(n *corev1.Namespace, policy v1alpha1.DeletionPolicy, pods int) string {
	inside := count(pods, "pod")
	switch {
	case policy != v1alpha1.DeletionDelete:
		return fmt.Sprintf("namespace %s stays, with its %s and its walls", n.Name, inside)
	case n.Annotations[v1alpha1.CreatedAnnotation] != "":
		return fmt.Sprintf("namespace %s is DELETED with everything in it, its %s and its volumes' claims too", n.Name, inside)
	default:
		return fmt.Sprintf("namespace %s, which croft adopted, stays with its %s, and loses its walls", n.Name, inside)
	}
}

// accessLost lists the users and groups that lose some or all of their access to a tenant.
func accessLost(object string, before, after *estate.Tenant) []Consequence {
	var all []Consequence
	var lost []string
	for _, person := range people(before.Access) {
		was, will := rolesOf(person, before.Access), []v1alpha1.Role(nil)
		if after != nil {
			will = rolesOf(person, after.Access)
		}
		switch {
		case len(will) == 0:
			lost = append(lost, person)
		case slices.ContainsFunc(was, func(r v1alpha1.Role) bool { return !includes(will, r) }):
			all = append(all, Consequence{Access, object, fmt.Sprintf("%s has the role %s of tenant %s from now on, and no longer %s", person, joined(will), before.Name, joined(was))})
		}
	}
	if len(lost) > 0 {
		all = append(all, Consequence{Access, object, fmt.Sprintf("%s lose%s the access to tenant %s: %s", holders(len(lost)), third(len(lost)), before.Name, some(lost))})
	}
	return all
}

// includes reports whether roles have all rights of another: an operator has a viewer's.
func includes(roles []v1alpha1.Role, other v1alpha1.Role) bool {
	return slices.Contains(roles, other) || other == v1alpha1.RoleViewer && slices.Contains(roles, v1alpha1.RoleOperator)
}

// people returns the users and groups with access, in the order of their declaration.
func people(access []v1alpha1.Access) []string {
	var all []string
	for _, a := range access {
		if name := person(a); !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	return all
}

func person(a v1alpha1.Access) string {
	if a.Group != "" {
		return "group " + a.Group
	}
	return "user " + a.User
}

func rolesOf(name string, access []v1alpha1.Access) []v1alpha1.Role {
	var roles []v1alpha1.Role
	for _, a := range access {
		if person(a) == name {
			roles = append(roles, a.Role)
		}
	}
	slices.Sort(roles)
	return slices.Compact(roles)
}

func joined(roles []v1alpha1.Role) string {
	names := make([]string, len(roles))
	for i, r := range roles {
		names[i] = string(r)
	}
	return strings.Join(names, ", ")
}

// holders counts users and groups.
func holders(n int) string {
	if n == 1 {
		return "1 user or group"
	}
	return fmt.Sprintf("%d users and groups", n)
}

// third returns the ending of a verb with a singular subject.
func third(n int) string {
	if n == 1 {
		return "s"
	}
	return ""
}
