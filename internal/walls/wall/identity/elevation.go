package identity

import (
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/declare/rights"
	"croft.dev/croft/internal/rules/admissionpolicy"
)

const (
	// ElevatedRole is the ClusterRole that elevations bind.
	ElevatedRole = "croft-elevated"
	// ElevationsPolicy is the name of the policy on requests for elevation.
	ElevationsPolicy = "croft-elevations"
)

// The rules of ElevationsPolicy.
const (
	RequesterRule    = "requested-by"
	DurationRule     = "max-duration"
	ApproverRule     = "approved-by"
	SecondPersonRule = "second-person"
)

// buildElevatedRules returns the operator's permissions without those by which access could
// outlast the elevation: to bind roles, and to create service accounts and their tokens.
func buildElevatedRules(p *estate.Platform) []rbacv1.PolicyRule {
	lasting := []string{"roles", "rolebindings", "serviceaccounts", "serviceaccounts/token", "elevations"}
	var all []rbacv1.PolicyRule
	for _, rule := range rights.ForRole(v1alpha1.RoleOperator, &p.PlatformSpec) {
		kept := rule
		kept.Resources = slices.DeleteFunc(slices.Clone(rule.Resources), func(r string) bool {
			return slices.Contains(lasting, r)
		})
		if len(kept.Resources) > 0 {
			all = append(all, kept)
		}
		read := rule
		read.Verbs = rights.Read
		read.Resources = slices.DeleteFunc(slices.Clone(rule.Resources), func(r string) bool {
			return !slices.Contains(lasting, r) || strings.Contains(r, "/") || !slices.Contains(rule.Verbs, "get")
		})
		if len(read.Resources) > 0 {
			all = append(all, read)
		}
	}
	return all
}

// buildElevatedRole returns the ClusterRole that elevations bind, or nothing if the Platform does
// not enable elevations.
func buildElevatedRole(p *estate.Platform) []client.Object {
	if p.Elevation == nil {
		return nil
	}
	return []client.Object{&rbacv1.ClusterRole{
		TypeMeta: makeRBACMeta("ClusterRole"), ObjectMeta: metav1.ObjectMeta{Name: ElevatedRole},
		Rules: buildElevatedRules(p),
	}}
}

// Policies returns the policies on requests for namespaces and, if the Platform enables
// elevations, on elevations.
func (Wall) Policies(p *estate.Platform) []admissionpolicy.Validating {
	all := []admissionpolicy.Validating{checkSelfService()}
	if p.Elevation != nil {
		all = append(all, checkElevations(p))
	}
	return all
}

// checkElevations requires a request to name its author, and an approval to name another
// person who is an approver. The schema makes the other fields immutable. Admins may write
// requests for other users. They are approvers only if the Platform lists them.
func checkElevations(p *estate.Platform) admissionpolicy.Validating {
	longest := admissionpolicy.Quote(p.Elevation.MaxDuration.Duration.String())
	approvers := make([]string, len(p.Elevation.Approvers))
	for i, g := range p.Elevation.Approvers {
		approvers[i] = admissionpolicy.Quote(g)
	}
	return admissionpolicy.Validating{
		Name:               ElevationsPolicy,
		IgnoresTenantRules: true,
		// A request must not be created in a namespace before a tenant receives it.
		ClusterWide: true,
		Resources: []admissionpolicy.Resource{{
			Group: v1alpha1.GroupVersion.Group, Version: "*", Resources: []string{"elevations"},
			Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update},
		}},
		Variables: []admissionpolicy.Variable{
			{Name: "approval", Expression: `has(object.spec.approvedBy) &&
				!(request.operation == "UPDATE" && has(oldObject.spec.approvedBy))`},
		},
		Rules: []admissionpolicy.Rule{
			{
				Name:    DurationRule,
				Summary: "an elevation does not last longer than the Platform's elevation.maxDuration",
				Expression: `request.operation != "CREATE" || ` +
					`duration(object.spec.duration) <= duration(` + longest + `)`,
				Message: `"spec.duration: " + object.spec.duration + " is longer than the platform's ` +
					`elevation.maxDuration: write at most " + ` + longest,
			},
			{
				Name: ApproverRule,
				Summary: "an elevation is approved by a member of the Platform's elevation.approvers, " +
					"in their own name",
				Expression: `!variables.approval || request.operation == "UPDATE" &&
					object.spec.approvedBy == request.userInfo.username &&
					request.userInfo.groups.exists(g, g in [` + strings.Join(approvers, ", ") + `])`,
				Message: `"spec.approvedBy: a member of the platform's elevation.approvers writes their own name ` +
					`here, after the request was created: ask one of them"`,
			},
			{
				Name: SecondPersonRule, Summary: "no user approves their own elevation",
				Expression: `!variables.approval || object.spec.approvedBy != object.spec.requestedBy`,
				Message: `"spec.approvedBy: the request is by " + object.spec.requestedBy + ": ` +
					`ask another approver"`,
			},
			{
				Name:    RequesterRule,
				Summary: "a request for elevation names its own requester, who is not a service account",
				// A member may create any number of service accounts, and each would have the
				// limits of a user (estate.MaxElevationsPerPerson).
				Expression: `request.operation != "CREATE" || object.spec.requestedBy == request.userInfo.username &&
					!request.userInfo.username.startsWith("system:serviceaccount:") ||
					` + admissionpolicy.ByAdmins(p.Admins),
				Message: `request.userInfo.username.startsWith("system:serviceaccount:")
					? "people request elevations, service accounts do not: request it as yourself"
					: "spec.requestedBy: write " + request.userInfo.username + ", which is your user name"`,
			},
		},
	}
}
