package install

import (
	admissionv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/internal/admissionpolicy"
)

const (
	// ProbesName is the name of the policy on the operator's pods.
	ProbesName = "croft-probes"
	// RevisionRule is its rule that reports the version of a namespace that an API server
	// evaluates.
	RevisionRule = "revision"
	// RevisionProbe is the generateName of a pod that asks for that version.
	RevisionProbe = "croft-revision-"
)

// Probes are the objects of that policy.
func Probes() []client.Object { return probesPolicy().Objects() }

// probesPolicy refuses pods that the operator would store. It creates pods to see whether
// the walls hold, always in a dry run, and RBAC has no word for that: without the policy,
// the operator's token starts pods in every namespace, kube-system among them.
//
// It refuses a pod named RevisionProbe with the resource version of its namespace. Admission
// policies read a tenant's rules from the same copy of the namespace, which each API server
// keeps for itself.
func probesPolicy() admissionpolicy.Validating {
	return admissionpolicy.Validating{
		Name: ProbesName, Ruleless: true, Anywhere: true,
		Resources: []admissionpolicy.Resource{{Version: "v1", Resources: []string{"pods"}, Operations: []admissionv1.OperationType{admissionv1.Create}}},
		Only:      map[string]string{"by-operator": "request.userInfo.username == " + admissionpolicy.Quote(admissionpolicy.OperatorUser)},
		Rules: []admissionpolicy.Rule{{
			Name: "dry-run-only", Says: "croft's operator creates pods in dry runs only",
			Holds:   "has(request.dryRun) && request.dryRun",
			Message: `"croft's operator creates pods in dry runs only, to see whether the walls hold"`,
		}, {
			Name: RevisionRule, Says: "croft's operator reads which version of a namespace an API server evaluates",
			Holds:   "!has(object.metadata.generateName) || object.metadata.generateName != " + admissionpolicy.Quote(RevisionProbe),
			Message: "namespaceObject.metadata.resourceVersion",
		}},
	}
}
