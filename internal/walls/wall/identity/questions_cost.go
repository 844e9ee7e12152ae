package identity

import (
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/rules/attack"
)

// buildCostQuestions ask the cluster's authorizer about costs, as croft ledger does: no object of this kind
// exists, so no request can test the right.
func buildCostQuestions(p *estate.Platform, own, other string) []attack.Attack {
	readIn := func(namespace string) authorizationv1.SelfSubjectAccessReviewSpec {
		return authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: namespace, Group: v1alpha1.GroupVersion.Group, Resource: "costs", Verb: "get"}}
	}
	all := []attack.Attack{
		expectDenied("read-costs-elsewhere", "read another tenant's costs", readIn(other)),
		expectDenied("read-costs-of-the-cluster", "read the costs of the whole cluster", readIn("")),
		expectAllowed("read-own-costs", "read the costs of one's own tenant", readIn(own)),
		sendAsViewer(expectAllowed("viewer-reads-own-costs", "read the costs of one's own tenant as a viewer", readIn(own))),
	}
	for _, role := range []string{AdminRole, AuditorRole} {
		groups := slices.DeleteFunc(slices.Clone(listGroups(role, p)), func(g string) bool { return g == "system:masters" })
		if len(groups) == 0 {
			continue
		}
		name := strings.TrimPrefix(role, "croft-")
		a := expectAllowed(name+"-reads-costs", "read the costs of the whole cluster, as a member of the groups of "+role, readIn(""))
		a.AsGroups = groups
		all = append(all, a)
	}
	return attack.WithReason("costs show the workloads and the size of other tenants", nil, all...)
}
