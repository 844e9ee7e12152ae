package identity

import (
	"slices"
	"strings"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/attack"
	"croft.dev/croft/internal/estate"
	"croft.dev/croft/internal/rights"
)

var (
	reading = verbsOf(rights.Read)
	writing = verbsOf(rights.Write)
	all     = verbsOf(slices.Concat(rights.Read, rights.Write))
)

// sweeps check the roles against every kind that a cluster serves, including kinds that
// are installed later.
func sweeps(p *estate.Platform, own, other string) []attack.Attack {
	return append([]attack.Attack{
		sweep("read-anything-elsewhere", "read any kind of object in another tenant's namespace", attack.Sweep{Namespace: other, Verbs: reading}),
		sweep("write-anything-elsewhere", "write or delete any kind of object in another tenant's namespace", attack.Sweep{Namespace: other, Verbs: writing}),
		sweep("read-anything-cluster-wide", "read any kind of object of the whole cluster, or of all namespaces at once", attack.Sweep{Verbs: reading, Permitted: classReading(p)}),
		sweep("write-anything-cluster-wide", "write or delete any kind of object of the whole cluster", attack.Sweep{Verbs: writing, Permitted: everybodyMay}),
		sweep("exceed-own-rights", "do to any kind of object in one's own namespace what the operator's role does not give", attack.Sweep{
			Namespace: own, Verbs: all, Permitted: givenTo(v1alpha1.RoleOperator, p)}),
		asViewer(sweep("viewer-exceeds-rights", "do to any kind of object in one's own namespace what the viewer's role does not give", attack.Sweep{
			Namespace: own, Verbs: all, Permitted: givenTo(v1alpha1.RoleViewer, p)})),
		asViewer(sweep("viewer-reads-anything-elsewhere", "read any kind of object in another tenant's namespace as a viewer", attack.Sweep{Namespace: other, Verbs: reading})),
		sweep("open-streams-elsewhere", "run a command in, attach to or forward a port of another tenant's pod, by any verb", just(other, "pods/exec", "pods/attach", "pods/portforward")),
		sweep("proxy-elsewhere", "reach another tenant's pods and Services through the API server, around its network policies", just(other, "pods/proxy", "services/proxy")),
		sweep("read-logs-elsewhere", "read the logs of another tenant's pod", just(other, "pods/log")),
		sweep("take-token-elsewhere", "ask for a token of another tenant's service account", just(other, "serviceaccounts/token")),
		sweep("proxy-to-nodes", "reach every pod of the cluster through the kubelets' own API", just("", "nodes/proxy")),
		mirrorSweep("use-own-rights", "do to every kind of object in one's own namespace what the operator's role gives", givenTo(v1alpha1.RoleOperator, p), own),
		asViewer(mirrorSweep("viewer-uses-own-rights", "do to every kind of object in one's own namespace what the viewer's role gives", givenTo(v1alpha1.RoleViewer, p), own)),
	}, platformMirrors(p)...)
}

// platformMirrors use all permissions of the platform's users. Their other permissions are
// out of croft's scope: they may have further bindings.
func platformMirrors(p *estate.Platform) []attack.Attack {
	var all []attack.Attack
	for _, role := range PlatformRoles {
		groups := slices.DeleteFunc(slices.Clone(groupsOf(role, p)), func(g string) bool { return g == "system:masters" })
		if len(groups) == 0 {
			continue
		}
		m := mirrorSweep("use-rights-of-"+strings.TrimPrefix(role, "croft-"), "do in the whole cluster what the ClusterRole "+role+" gives, as a member of the groups it is bound to",
			givenBy(PlatformRules(role, p)), "")
		m.AsGroups = groups
		all = append(all, m)
	}
	return all
}

// classReading returns a function that permits members to read classes if the Platform has
// classReaders, because members may be in these groups.
func classReading(p *estate.Platform) func(group, resource string, verb attack.Verb) bool {
	reads := givenBy(PlatformRules(ClassesRole, p))
	return func(group, resource string, verb attack.Verb) bool {
		return everybodyMay(group, resource, verb) || len(p.ClassReaders) > 0 && reads(group, resource, verb)
	}
}

func sweep(name, summary string, s attack.Sweep) attack.Attack {
	return attack.Attack{Name: name, Kind: attack.Breach, Summary: summary, Sweep: &s, StoppedBy: attack.ByRBAC}
}

func mirrorSweep(name, summary string, given func(group, resource string, verb attack.Verb) bool, namespace string) attack.Attack {
	return attack.Attack{Name: name, Kind: attack.Mirror, Summary: summary, Sweep: &attack.Sweep{
		Namespace: namespace, Verbs: all,
		Permitted: func(group, resource string, verb attack.Verb) bool { return !given(group, resource, verb) },
	}}
}

// just returns a sweep of a few resources of the core group with every verb.
func just(namespace string, resources ...string) attack.Sweep {
	return attack.Sweep{Namespace: namespace, Verbs: all, Permitted: func(group, resource string, _ attack.Verb) bool {
		return group != "" || !slices.Contains(resources, resource)
	}}
}

// givenTo returns a function that evaluates a role's rules as RBAC does. The attacks send all
// other requests, which must be refused.
func givenTo(role v1alpha1.Role, p *estate.Platform) func(group, resource string, verb attack.Verb) bool {
	return givenBy(rights.Of(role, &p.PlatformSpec))
}

// everybodyMay reports whether Kubernetes' own role system:basic-user grants a request to
// every authenticated user: a request about the user's own identity and permissions.
func everybodyMay(group, resource string, verb attack.Verb) bool {
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

func verbsOf(names []string) []attack.Verb {
	verbs := make([]attack.Verb, len(names))
	for i, name := range names {
		verbs[i] = attack.Verb(name)
	}
	return verbs
}
