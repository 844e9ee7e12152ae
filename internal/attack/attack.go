// Package attack describes a tenant's possible attacks, as data: the user, the request,
// and the rule that must stop it. Walls declare attacks, package verify tries them on a
// cluster.
package attack

import (
	"fmt"
	"regexp"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/admissionpolicy"
)

// Kind tells an attack from its mirror.
type Kind string

const (
	// Breach is something that a tenant must not be able to do.
	Breach Kind = "attack"
	// Mirror is something that a tenant must still be able to do: a wall that
	// stops it is broken.
	Mirror Kind = "mirror"
)

// Verifier is the name under which verify acts where a tenant's access names only groups.
const Verifier = "croft-verify"

// Member is the name of the user that verify acts as for a role of a tenant's access: the
// first user that it names.
func Member(access []v1alpha1.Access, role v1alpha1.Role) string {
	for _, a := range access {
		if a.Role == role && a.User != "" {
			return a.User
		}
	}
	return Verifier
}

// Attack is one thing that the strongest member of a tenant tries.
type Attack struct {
	// Name is unique and made of lower-case words and hyphens.
	Name string
	Kind Kind
	// Wall and By, the name of the tenant that tries it, are filled in by package
	// wall.
	Wall, By string
	// Summary describes the attempt in one line.
	Summary string
	// Why is the harm if it succeeded.
	Why string
	// References are where it is known from: CVEs, issues, documentation.
	References []string
	// As is the role that tries it; the operator, who may most, if empty.
	As v1alpha1.Role
	// AsGroups try it instead of a member of the tenant: a user in all of these groups.
	AsGroups []string
	// AsUser is the name of the user in AsGroups; any name if empty.
	AsUser string
	// Setup is created by the platform beforehand and removed afterwards. A Binding
	// among it is the scheduler's, which puts a pod on a node that need not exist.
	Setup []client.Object
	// Request is the tenant's request. Exactly one of Request, Sweep, Flow and Pairs is
	// set.
	Request *Request
	// Sweep is a request for each of many kinds and verbs.
	Sweep *Sweep
	// Flow is traffic that is judged by the network policies in the cluster.
	Flow *Flow
	// Pairs is traffic between all tenants that the cluster has.
	Pairs *Pairs
	// StoppedBy must stop it. A Mirror has none.
	StoppedBy Stopper
	// Warned is for a Mirror that is allowed with a warning.
	Warned bool
	// Unruled is for a Mirror of a request by another party than a tenant, which others
	// than croft may refuse: only croft's refusal counts.
	Unruled bool
	// Outcome reports an error of the returned object; nil if there is none. It judges
	// mirrors, and attacks that are allowed and made harmless.
	Outcome func(got client.Object) error
}

// Verb is the verb of a request.
type Verb string

// The verbs that attacks use, as RBAC names them.
const (
	Create           Verb = "create"
	Update           Verb = "update"
	Patch            Verb = "patch"
	Delete           Verb = "delete"
	DeleteCollection Verb = "deletecollection"
	Get              Verb = "get"
	List             Verb = "list"
	Watch            Verb = "watch"
)

// Request is one call to the API server.
type Request struct {
	Verb Verb
	// Object is the written object, or names the one that is read or deleted.
	Object client.Object
	// Subresource, such as ephemeralcontainers; empty for the object itself.
	Subresource string
	// Body is sent to the subresource where it is of another kind than Object.
	Body client.Object
	// GracePeriodSeconds is the grace period of a Delete.
	GracePeriodSeconds *int64
	// Change alters the object as it stands in the cluster, for Update and Patch.
	// It reports a live object that is not of the kind it expects.
	Change func(live client.Object) error
}

// Sweep tries verbs on every kind that the cluster serves, so that unknown kinds are
// tested against the roles, too. Every request must be refused; in a Mirror, none.
type Sweep struct {
	// Namespace is where; kinds of the whole cluster if empty.
	Namespace string
	// Verbs are tried on every kind that has them.
	Verbs []Verb
	// Permitted are left out, since the role gives them.
	Permitted func(group, resource string, verb Verb) bool
}

// Pairs is a connection from every namespace of every tenant in the cluster to
// every other tenant's.
type Pairs struct {
	// From are the namespaces that connect to every tenant's instead.
	From []string
	// Port is the destination's; any port that the policies name if 0.
	Port int
	// Protocol is TCP or UDP.
	Protocol string
}

// Flow is a connection from a pod of one namespace, or an address outside, to a
// pod of another, or an address outside.
type Flow struct {
	FromNamespace string
	// FromIP is the one side where it is no pod.
	FromIP string
	// ToNamespace and ToLabels name the pod on the other side.
	ToNamespace string
	ToLabels    map[string]string
	// ToIP is the other side where it is no pod.
	ToIP string
	Port int
	// Protocol is TCP or UDP.
	Protocol string
	// Beside are policies that are evaluated in addition, as an admin's mistakes. They
	// are not written.
	Beside []client.Object
	// Without are policies that are left out of the evaluation, so that the policies
	// behind them are tested, too.
	Without []client.Object
}

// Stopper must stop an attack. It recognises its own refusals, so that a request which
// fails for another reason never counts as stopped.
type Stopper struct {
	// Name is for people: "policy croft-pods", "RBAC".
	Name string
	// Policy and Rule name the rule of an admission policy, where it is one, and
	// Constraint the kind of the constraints that hold the same rule.
	Policy, Rule, Constraint string
	// Refuses reports whether an error is this stopper's refusal. It is nil if the
	// request is allowed and made harmless, or answered by a warning.
	Refuses func(error) bool
	// Warns reports whether a warning is this stopper's, where it lets the request
	// through and says what will come of it.
	Warns func(warning string) bool
}

// ByPolicy is the refusal of one rule of a ValidatingAdmissionPolicy. The
// policy's name alone would not do: a policy that does not find the rules, or
// whose expression fails, denies everything under that name, and proves nothing.
func ByPolicy(policy, rule string) Stopper {
	return Stopper{
		Name: "policy " + policy + ", rule " + rule, Policy: policy, Rule: rule,
		Refuses: func(err error) bool {
			return apierrors.IsForbidden(err) && strings.Contains(err.Error(), refusal(policy, rule))
		},
	}
}

func refusal(policy, rule string) string {
	return fmt.Sprintf("ValidatingAdmissionPolicy '%s' with binding '%s' denied request: %s", policy, policy, admissionpolicy.Refusal(rule))
}

// OrByConstraint is a rule of a policy that Gatekeeper holds too, by a constraint
// of a kind: where the policy is not there, or not asked, it is the constraint that
// refuses.
func OrByConstraint(policy Stopper, kind string) Stopper {
	refuses := policy.Refuses
	policy.Constraint = kind
	policy.Refuses = func(err error) bool {
		return refuses(err) || apierrors.IsForbidden(err) && strings.Contains(err.Error(), gatekeeperDenied) &&
			strings.Contains(err.Error(), "] "+admissionpolicy.Refusal(policy.Rule))
	}
	return policy
}

// gatekeeperDenied is the prefix of refusals by Gatekeeper's validating webhook. The
// name of the constraint follows in brackets.
const gatekeeperDenied = `admission webhook "validation.gatekeeper.sh" denied the request: [`

// ByWarning is the warning of one rule of a ValidatingAdmissionPolicy about what
// is written here and would be refused elsewhere later.
func ByWarning(policy, rule string) Stopper {
	return Stopper{
		Name: "warning of policy " + policy + ", rule " + rule, Policy: policy, Rule: rule,
		Warns: func(got string) bool {
			return strings.HasPrefix(got, "Validation failed for ValidatingAdmissionPolicy '"+policy+"'") && strings.Contains(got, "': "+admissionpolicy.Refusal(rule))
		},
	}
}

// WarnsOfCroft reports a warning of any of croft's policies.
func WarnsOfCroft(got string) bool {
	return strings.HasPrefix(got, "Validation failed for ValidatingAdmissionPolicy 'croft-")
}

// policyOfCroft is how the API server names one of croft's policies that refuses.
var policyOfCroft = regexp.MustCompile(`(?i)policy ['"]croft-`)

// RefusedByCroft reports a refusal by any of croft's policies or constraints.
func RefusedByCroft(err error) bool {
	_, byGatekeeper, _ := strings.Cut(err.Error(), gatekeeperDenied)
	return policyOfCroft.MatchString(err.Error()) || strings.HasPrefix(byGatekeeper, "croft")
}

// ByMutation is a policy or a plugin that lets the request through and changes
// it: the attack's Outcome says whether it is harmless.
func ByMutation(name string) Stopper { return Stopper{Name: "mutation " + name, Policy: name} }

// ByEngine changes pods and DaemonSets: a policy or, where Gatekeeper is the engine, its
// mutators.
func ByEngine(engine v1alpha1.PlacementEngine, policy string) Stopper {
	if engine == v1alpha1.PlacementGatekeeper {
		return ByMutation("Gatekeeper")
	}
	return ByMutation(policy)
}

// ByRBAC is a request that no role permits.
var ByRBAC = Stopper{
	Name: "RBAC",
	Refuses: func(err error) bool {
		return apierrors.IsForbidden(err) &&
			(strings.Contains(err.Error(), " cannot ") || strings.Contains(err.Error(), "is attempting to grant RBAC permissions not currently held"))
	},
}

// ByPodSecurity is a refusal of the Pod Security admission plugin.
var ByPodSecurity = Stopper{
	Name: "Pod Security",
	Refuses: func(err error) bool {
		return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "violates PodSecurity")
	},
}

// ByPodSecurityWarning is the warning of the Pod Security admission plugin about
// a template whose pods it would refuse.
var ByPodSecurityWarning = Stopper{
	Name:  "warning of Pod Security",
	Warns: func(got string) bool { return strings.HasPrefix(got, "would violate PodSecurity") },
}

// ByAdminAccess is Kubernetes' own refusal of an administrator's access to
// devices in a namespace that is not labelled for it, KEP-5018. The label is
// protected by croft.
var ByAdminAccess = Stopper{
	Name: "Kubernetes: admin access to devices",
	Refuses: func(err error) bool {
		return (apierrors.IsForbidden(err) || apierrors.IsInvalid(err)) && strings.Contains(err.Error(), "resource.kubernetes.io/admin-access")
	},
}

// ByQuota is a refusal of the ResourceQuota admission plugin.
var ByQuota = Stopper{
	Name: "quota",
	Refuses: func(err error) bool {
		return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "exceeded quota")
	},
}

// ByNetworkPolicy stops a Flow.
var ByNetworkPolicy = Stopper{Name: "network policy"}
