package install

import (
	admissionv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/internal/admissionpolicy"
)

const (
	// ProbesName is the name of the policy that keeps the operator's pods to dry runs.
	ProbesName = "croft-probes"
	// RevisionPolicy is the name of the policy by which an API server reports its version of
	// a namespace, and RevisionRule that of its rule.
	RevisionPolicy, RevisionRule = "croft-revision", "revision"
	// RevisionProbe is the generateName of a LimitRange that asks for that version.
	RevisionProbe = "croft-revision-"
)

// Probes are the objects of these policies.
func Probes() []client.Object {
	return append(probesPolicy().Objects(), revisionPolicy().Objects()...)
}

// probesPolicy refuses pods that the operator would store. It creates pods to see whether
// the walls hold, always in a dry run, and RBAC has no word for that: without the policy,
// the operator's token starts pods in every namespace, kube-system among them.
func probesPolicy() admissionpolicy.Validating {
	return admissionpolicy.Validating{
		Name: ProbesName, Ruleless: true, Anywhere: true,
		Resources: []admissionpolicy.Resource{{Version: "v1", Resources: []string{"pods"}, Operations: []admissionv1.OperationType{admissionv1.Create}}},
		Only:      byOperator(),
		Rules: []admissionpolicy.Rule{{
			Name: "dry-run-only", Says: "croft's operator creates pods in dry runs only",
			Holds:   "has(request.dryRun) && request.dryRun",
			Message: `"croft's operator creates pods in dry runs only, to see whether the walls hold"`,
		}},
	}
}

// revisionPolicy refuses a LimitRange named RevisionProbe with the resource version of its
// namespace. All admission policies of an API server read a tenant's rules from the same
// copy of the namespace. No other rule applies to a LimitRange of the operator's, so none
// hides the answer.
func revisionPolicy() admissionpolicy.Validating {
	return admissionpolicy.Validating{
		Name: RevisionPolicy, Ruleless: true, Anywhere: true,
		Resources: []admissionpolicy.Resource{{Version: "v1", Resources: []string{"limitranges"}, Operations: []admissionv1.OperationType{admissionv1.Create}}},
		Only:      byOperator(),
		Rules: []admissionpolicy.Rule{{
			Name: RevisionRule, Says: "croft's operator reads which version of a namespace an API server evaluates",
			Holds:   "!has(object.metadata.generateName) || object.metadata.generateName != " + admissionpolicy.Quote(RevisionProbe),
			Message: "namespaceObject.metadata.resourceVersion",
		}},
	}
}

func byOperator() map[string]string {
	return map[string]string{"by-operator": "request.userInfo.username == " + admissionpolicy.Quote(admissionpolicy.OperatorUser)}
}
