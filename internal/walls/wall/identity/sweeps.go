package identity

import (
	"slices"
	"strings"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/declare/rights"
	"croft.dev/croft/internal/rules/attack"
)

var (
	reading = convertVerbs(rights.Read)
	writing = convertVerbs(rights.Write)
	all     = convertVerbs(slices.Concat(rights.Read, rights.Write))
)

// buildSweeps check the roles against every kind that a cluster serves, including kinds that
// are installed later.
func buildSweeps(p *estate.Platform, own, other string) []attack.Attack {
	return append([]attack.Attack{
		makeSweep("read-anything-elsewhere", "read any kind of object in another tenant's namespace", attack.Sweep{Namespace: other, Verbs: reading}),
		makeSweep("write-anything-elsewhere", "write or delete any kind of object in another tenant's namespace", attack.Sweep{Namespace: other, Verbs: writing}),
		makeSweep("read-anything-cluster-wide", "read any kind of object of the whole cluster, or of all namespaces at once", attack.Sweep{Verbs: reading, Permitted: newClassReadEvaluator(p)}),
		makeSweep("write-anything-cluster-wide", "write or delete any kind of object of the whole cluster", attack.Sweep{Verbs: writing, Permitted: allowsEverybody}),
		makeSweep("exceed-own-rights", "do more with any kind of object in one's own namespace than the operator's role allows", attack.Sweep{
			Namespace: own, Verbs: all, Permitted: newRoleEvaluator(v1alpha1.RoleOperator, p)}),
		sendAsViewer(makeSweep("viewer-exceeds-rights", "do more with any kind of object in one's own namespace than the viewer's role allows", attack.Sweep{
			Namespace: own, Verbs: all, Permitted: newRoleEvaluator(v1alpha1.RoleViewer, p)})),
		sendAsViewer(makeSweep("viewer-reads-anything-elsewhere", "read any kind of object in another tenant's namespace as a viewer", attack.Sweep{Namespace: other, Verbs: reading})),
		makeSweep("open-streams-elsewhere", "run a command in, attach to or forward a port of another tenant's pod, by any verb", sweepResources(other, "pods/exec", "pods/attach", "pods/portforward")),
		makeSweep("proxy-elsewhere", "reach another tenant's pods and Services through the API server, around its network policies", sweepResources(other, "pods/proxy", "services/proxy")),
		makeSweep("read-logs-elsewhere", "read the logs of another tenant's pod", sweepResources(other, "pods/log")),
		makeSweep("take-token-elsewhere", "ask for a token of another tenant's service account", sweepResources(other, "serviceaccounts/token")),
		makeSweep("proxy-to-nodes", "reach every pod of the cluster through the kubelets' own API", sweepResources("", "nodes/proxy")),
		makeMirrorSweep("use-own-rights", "do with every kind of object in one's own namespace what the operator's role allows", newRoleEvaluator(v1alpha1.RoleOperator, p), own),
		sendAsViewer(makeMirrorSweep("viewer-uses-own-rights", "do with every kind of object in one's own namespace what the viewer's role allows", newRoleEvaluator(v1alpha1.RoleViewer, p), own)),
	}, buildPlatformMirrors(p)...)
}

// buildPlatformMirrors use all permissions of the platform's users. Their other permissions are
// out of croft's scope: they may have further bindings.
func buildPlatformMirrors(p *estate.Platform) []attack.Attack {
	var all []attack.Attack
	for _, role := range PlatformRoles {
		groups := slices.DeleteFunc(slices.Clone(listGroups(role, p)), func(g string) bool { return g == "system:masters" })
		if len(groups) == 0 {
			continue
		}
		m := makeMirrorSweep("use-rights-of-"+strings.TrimPrefix(role, "croft-"), "use the rights of the ClusterRole "+role+" in the whole cluster, as a member of the groups to which it is bound",
			newRuleEvaluator(PlatformRules(role, p)), "")
		m.AsGroups = groups
		all = append(all, m)
	}
	return all
}

// newClassReadEvaluator returns a function that permits members to read classes if the Platform has
// classReaders, because members may be in these groups.
func newClassReadEvaluator(p *estate.Platform) func(group, resource string, verb attack.Verb) bool {
	reads := newRuleEvaluator(PlatformRules(ClassesRole, p))
	return func(group, resource string, verb attack.Verb) bool {
		return allowsEverybody(group, resource, verb) || len(p.ClassReaders) > 0 && reads(group, resource, verb)
	}
}

func makeSweep(name, summary string, s attack.Sweep) attack.Attack {
	return attack.Attack{Name: name, Kind: attack.Breach, Summary: summary, Sweep: &s, StoppedBy: attack.ByRBAC}
}

func makeMirrorSweep(name, summary string, given func(group, resource string, verb attack.Verb) bool, namespace string) attack.Attack {
	return attack.Attack{Name: name, Kind: attack.Mirror, Summary: summary, Sweep: &attack.Sweep{
		Namespace: namespace, Verbs: all,
		Permitted: func(group, resource string, verb attack.Verb) bool { return !given(group, resource, verb) },
	}}
}

// sweepResources returns a sweep of a few resources of the core group with every verb.
func sweepResources(namespace string, resources ...string) attack.Sweep {
	return attack.Sweep{Namespace: namespace, Verbs: all, Permitted: func(group, resource string, _ attack.Verb) bool {
		return group != "" || !slices.Contains(resources, resource)
	}}
}

// newRoleEvaluator returns a function that evaluates a role's rules as RBAC does. The attacks send all
// other requests, which must be refused.
func newRoleEvaluator(role v1alpha1.Role, p *estate.Platform) func(group, resource string, verb attack.Verb) bool {
	return newRuleEvaluator(rights.ForRole(role, &p.PlatformSpec))
}

// allowsEverybody reports whether Kubernetes' own role system:basic-user grants a request to
// every authenticated user: a request about the user's own identity and permissions.
func allowsEverybody(group, resource string, verb attack.Verb) bool {
	if verb != attack.Create {
		return false
	}
	switch group {
	case "authentication.k8s.io":
		return resource == "selfsubjectreviews"
	case "authorization.k8s.io":
		return resource == "selfsubjectaccessreviews" || resource == "selfsubjectrulesreviews"
	default:
		return false
	}
}

func convertVerbs(names []string) []attack.Verb {
	verbs := make([]attack.Verb, len(names))
	for i, name := range names {
		verbs[i] = attack.Verb(name)
	}
	return verbs
}
