package install

import (
	admissionv1 "k8s.io/api/admissionregistration/v1"

	"croft.dev/croft/internal/rules/admissionpolicy"
)

const (
	// ProbesName is the name of the policy that limits the operator's pods to dry runs.
	ProbesName = "croft-probes"
	// RevisionPolicy is the name of the policy by which an API server reports its version of
	// a namespace.
	RevisionPolicy = "croft-revision"
	// RevisionRule is the name of that policy's rule.
	RevisionRule = "revision"
	// RevisionProbe is the generateName of a LimitRange that requests that version.
	RevisionProbe = "croft-revision-"
)

// buildProbesPolicy refuses pods that would be stored for the operator. The operator creates
// pods to check whether the walls are enforced, always in a dry run. RBAC cannot express
// that: without the policy, the operator's token could start pods in every namespace,
// including kube-system.
func buildProbesPolicy() admissionpolicy.Validating {
	return admissionpolicy.Validating{
		Name: ProbesName, IgnoresTenantRules: true, ClusterWide: true,
		Resources:       []admissionpolicy.Resource{{Version: "v1", Resources: []string{"pods"}, Operations: []admissionv1.OperationType{admissionv1.Create}}},
		MatchConditions: byOperator(),
		Rules: []admissionpolicy.Rule{{
			Name: "dry-run-only", Summary: "croft's operator creates pods only in dry runs",
			Expression: "has(request.dryRun) && request.dryRun",
			Message:    `"croft's operator may create pods only in dry runs, to test the walls"`,
		}},
	}
}

// buildRevisionPolicy refuses a LimitRange named RevisionProbe with the resource version of its
// namespace. All admission policies of an API server read a tenant's rules from the same
// copy of the namespace. No other rule applies to a LimitRange of the operator's, so none
// hides the answer.
func buildRevisionPolicy() admissionpolicy.Validating {
	return admissionpolicy.Validating{
		Name: RevisionPolicy, IgnoresTenantRules: true, ClusterWide: true,
		Resources:       []admissionpolicy.Resource{{Version: "v1", Resources: []string{"limitranges"}, Operations: []admissionv1.OperationType{admissionv1.Create}}},
		MatchConditions: byOperator(),
		Rules: []admissionpolicy.Rule{{
			Name: RevisionRule, Summary: "croft's operator reads which version of a namespace an API server evaluates",
			Expression: "!has(object.metadata.generateName) || object.metadata.generateName != " + admissionpolicy.Quote(RevisionProbe),
			Message:    "namespaceObject.metadata.resourceVersion",
		}},
	}
}

func byOperator() map[string]string {
	return map[string]string{"by-operator": "request.userInfo.username == " + admissionpolicy.Quote(admissionpolicy.OperatorUser)}
}
