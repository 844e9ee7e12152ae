// Package attack describes a tenant's possible attacks as data: the user, the request, and
// the rule that must stop it. Walls declare attacks, and package verify runs them against a
// cluster.
package attack

import (
	"fmt"
	"regexp"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/rules/admissionpolicy"
)

// Kind distinguishes an attack from its mirror.
type Kind string

const (
	// Breach is an action that must be denied to a tenant.
	Breach Kind = "attack"
	// Mirror is an action that must be allowed to a tenant. A wall that stops it is broken.
	Mirror Kind = "mirror"
)

// Verifier is the user name of `croft verify` if a tenant's access names only groups.
const Verifier = "croft-verify"

// FindMember returns the user that `croft verify` impersonates for a role of a tenant's access:
// the first user that the access names.
func FindMember(access []v1alpha1.Access, role v1alpha1.Role) string {
	for _, a := range access {
		if a.Role == role && a.User != "" {
			return a.User
		}
	}
	return Verifier
}

// Attack is an attempt by the strongest member of a tenant.
type Attack struct {
	// Name is unique and consists of lower-case words and hyphens.
	Name string
	Kind Kind
	// Wall is the wall under test, and Attacker the name of the attacking tenant. Package wall sets
	// both.
	Wall, Attacker string
	// Summary describes the attempt in one line.
	Summary string
	// Harm is the harm of a successful attack.
	Harm string
	// References are the sources: CVEs, issues, documentation.
	References []string
	// Role is the role of the attacker. It defaults to the operator, which has the most
	// permissions.
	Role v1alpha1.Role
	// AsGroups replaces the member of the tenant by a user who is in all of these groups.
	AsGroups []string
	// AsUser is the name of the user in AsGroups. It defaults to any name.
	AsUser string
	// Setup is created by the platform before the attack and deleted afterwards. A Binding in
	// it is created as the scheduler. It assigns a pod to a node that need not exist.
	Setup []client.Object
	// Request is the tenant's request. Exactly one of Request, Sweep, Flow and Pairs is set.
	Request *Request
	// Sweep is a request for each of many kinds and verbs.
	Sweep *Sweep
	// Flow is traffic that is compared with the network policies in the cluster.
	Flow *Flow
	// Pairs is traffic between all tenants of the cluster.
	Pairs *Pairs
	// StoppedBy must stop the attack. A Mirror has none.
	StoppedBy Stopper
	// ExpectsWarning is set for a Mirror that is allowed with a warning.
	ExpectsWarning bool
	// OutsideTenants is set for a Mirror whose request does not come from a tenant. Components other
	// than croft may refuse it: only a refusal by croft counts.
	OutsideTenants bool
	// Outcome, if set, returns an error if the returned object is not as expected. It is used
	// for mirrors, and for attacks that are allowed and made harmless.
	Outcome func(got client.Object) error
}

// Verb is the verb of a request.
type Verb string

// The verbs that attacks use, by their names in RBAC.
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

// Request is a request to the API server.
type Request struct {
	Verb Verb
	// Object is the object to write, or names the object to read or delete.
	Object client.Object
	// Subresource is a subresource such as ephemeralcontainers. It is empty for the object
	// itself.
	Subresource string
	// Body is sent to the subresource if its kind differs from Object's.
	Body client.Object
	// GracePeriodSeconds is the grace period of a Delete.
	GracePeriodSeconds *int64
	// Change modifies the object as it exists in the cluster, for Update and Patch. It
	// returns an error if the live object has an unexpected kind.
	Change func(live client.Object) error
}

// Sweep tries verbs on every kind that the cluster serves, so that roles are also tested with
// unknown kinds. Every request must be refused. In a Mirror, none may be.
type Sweep struct {
	// Namespace is the namespace of the requests. If empty, cluster-scoped kinds are tried.
	Namespace string
	// Verbs are tried on every kind that supports them.
	Verbs []Verb
	// Permitted are requests to skip, since the role allows them.
	Permitted func(group, resource string, verb Verb) bool
}

// Pairs is a connection from every namespace of every tenant in the cluster to the namespaces
// of every other tenant.
type Pairs struct {
	// From are the namespaces that connect to every tenant, instead of the other tenants'
	// namespaces.
	From []string
	// Agreed are connections to which two tenants have agreed. They are left out.
	Agreed []Agreement
	// Port is the destination's port. 0 means any port that the policies name.
	Port int
	// Protocol is TCP or UDP.
	Protocol string
}

// Agreement is the set of connections to which two tenants have agreed.
type Agreement struct {
	// From and To are the two tenants.
	From, To string
	// ToNamespace is the only namespace of To that is included, or "" for all.
	ToNamespace string
	// FromLabels and ToLabels are labels of their pods. Without labels, all pods are included.
	FromLabels, ToLabels map[string]string
	// Ports are the destination's ports.
	Ports []Ports
}

// Ports are the ports of a protocol from First to Last.
type Ports struct {
	Protocol    string
	First, Last int
}

// Flow is a connection from a pod, or an address outside of the cluster, to a pod, or an
// address outside of the cluster.
type Flow struct {
	// FromNamespace and FromLabels name the source pod.
	FromNamespace string
	FromLabels    map[string]string
	// FromIP is the source, if it is not a pod.
	FromIP string
	// ToNamespace and ToLabels name the destination pod.
	ToNamespace string
	ToLabels    map[string]string
	// ToIP is the destination, if it is not a pod.
	ToIP string
	Port int
	// Protocol is TCP or UDP.
	Protocol string
	// AddedPolicies are policies that are evaluated in addition, such as an admin's mistakes. They
	// are not written to the cluster.
	AddedPolicies []client.Object
	// OmittedPolicies are policies that are left out of the evaluation, so that the policies after
	// them are tested, too.
	OmittedPolicies []client.Object
}

// Stopper must stop an attack. It recognizes its own refusals, so that a request which fails
// for another reason never counts as stopped.
type Stopper struct {
	// Name is for messages: "policy croft-pods", "RBAC".
	Name string
	// Policy and Rule name the rule of an admission policy, if it is one. Constraint is the
	// kind of the constraints that enforce the same rule.
	Policy, Rule, Constraint string
	// IsRefusal reports whether an error is a refusal by this stopper. It is nil if the request
	// is allowed and made harmless, or leads to a warning.
	IsRefusal func(error) bool
	// IsWarning reports whether a warning is this stopper's. Such a stopper allows the request
	// and warns of its consequences.
	IsWarning func(warning string) bool
}

// ByPolicy is the refusal of one rule of a ValidatingAdmissionPolicy. The policy's name alone
// is not enough: a policy that does not find the tenant's rules, or whose expression fails,
// denies every request under that name, and this proves nothing.
func ByPolicy(policy, rule string) Stopper {
	return Stopper{
		Name: "policy " + policy + ", rule " + rule, Policy: policy, Rule: rule,
		IsRefusal: func(err error) bool {
			return apierrors.IsForbidden(err) && strings.Contains(err.Error(), formatRefusal(policy, rule))
		},
	}
}

func formatRefusal(policy, rule string) string {
	return fmt.Sprintf("ValidatingAdmissionPolicy '%s' with binding '%s' denied request: %s", policy, policy, admissionpolicy.RefusalPrefix(rule))
}

// OrByConstraint is a rule of a policy that Gatekeeper also enforces, by a constraint of a
// kind. If the policy does not exist or does not apply, the constraint refuses the request.
func OrByConstraint(policy Stopper, kind string) Stopper {
	refuses := policy.IsRefusal
	policy.Constraint = kind
	policy.IsRefusal = func(err error) bool {
		return refuses(err) || apierrors.IsForbidden(err) && strings.Contains(err.Error(), gatekeeperDenied) &&
			strings.Contains(err.Error(), "] "+admissionpolicy.RefusalPrefix(policy.Rule))
	}
	return policy
}

// gatekeeperDenied is the prefix of refusals by Gatekeeper's validating webhook. The name of
// the constraint follows in brackets.
const gatekeeperDenied = `admission webhook "validation.gatekeeper.sh" denied the request: [`

// ByWarning is the warning of one rule of a ValidatingAdmissionPolicy about an object that is
// allowed here and would lead to a refusal later.
func ByWarning(policy, rule string) Stopper {
	return Stopper{
		Name: "warning of policy " + policy + ", rule " + rule, Policy: policy, Rule: rule,
		IsWarning: func(got string) bool {
			return strings.HasPrefix(got, "Validation failed for ValidatingAdmissionPolicy '"+policy+"'") && strings.Contains(got, "': "+admissionpolicy.RefusalPrefix(rule))
		},
	}
}

// IsCroftWarning reports whether a warning comes from one of croft's policies.
func IsCroftWarning(got string) bool {
	return strings.HasPrefix(got, "Validation failed for ValidatingAdmissionPolicy 'croft-")
}

// policyOfCroft matches the API server's refusals by croft's policies.
var policyOfCroft = regexp.MustCompile(`(?i)policy ['"]croft-`)

// IsCroftRefusal reports whether an error is a refusal by one of croft's policies or
// constraints.
func IsCroftRefusal(err error) bool {
	_, byGatekeeper, _ := strings.Cut(err.Error(), gatekeeperDenied)
	return policyOfCroft.MatchString(err.Error()) || strings.HasPrefix(byGatekeeper, "croft")
}

// ByMutation is a policy or a plugin that allows the request and changes it. The attack's
// Outcome reports whether the result is harmless.
func ByMutation(name string) Stopper { return Stopper{Name: "mutation " + name, Policy: name} }

// ByEngine is the component that changes pods and DaemonSets: a policy, or Gatekeeper's
// mutators if Gatekeeper is the engine.
func ByEngine(engine v1alpha1.PlacementEngine, policy string) Stopper {
	if engine == v1alpha1.PlacementGatekeeper {
		return ByMutation("Gatekeeper")
	}
	return ByMutation(policy)
}

// ByRBAC is the refusal of a request that no role permits.
var ByRBAC = Stopper{
	Name: "RBAC",
	IsRefusal: func(err error) bool {
		return apierrors.IsForbidden(err) &&
			(strings.Contains(err.Error(), " cannot ") || strings.Contains(err.Error(), "is attempting to grant RBAC permissions not currently held"))
	},
}

// ByPodSecurity is a refusal by the Pod Security admission plugin.
var ByPodSecurity = Stopper{
	Name: "Pod Security",
	IsRefusal: func(err error) bool {
		return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "violates PodSecurity")
	},
}

// ByPodSecurityWarning is the warning of the Pod Security admission plugin about a template
// whose pods it would refuse.
var ByPodSecurityWarning = Stopper{
	Name:      "warning of Pod Security",
	IsWarning: func(got string) bool { return strings.HasPrefix(got, "would violate PodSecurity") },
}

// ByAdminAccess is Kubernetes' own refusal of admin access to devices in a namespace without
// the required label (KEP-5018). croft protects the label.
var ByAdminAccess = Stopper{
	Name: "Kubernetes: admin access to devices",
	IsRefusal: func(err error) bool {
		return (apierrors.IsForbidden(err) || apierrors.IsInvalid(err)) && strings.Contains(err.Error(), "resource.kubernetes.io/admin-access")
	},
}

// ByQuota is a refusal by the ResourceQuota admission plugin.
var ByQuota = Stopper{
	Name: "quota",
	IsRefusal: func(err error) bool {
		return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "exceeded quota")
	},
}

// ByNetworkPolicy denies a Flow.
var ByNetworkPolicy = Stopper{Name: "network policy"}
