package install

import (
	admissionv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/internal/admissionpolicy"
)

// ProbesName is the name of the policy that limits the operator's pods to dry runs.
const ProbesName = "croft-probes"

// ProbeObjects returns the objects of the policy ProbesName.
func ProbeObjects() []client.Object { return buildProbesPolicy().Objects() }

// buildProbesPolicy refuses pods that would be stored for the operator. The operator creates
// pods to check whether the walls are enforced, always in a dry run. RBAC cannot express
// that: without the policy, the operator's token could start pods in every namespace,
// including kube-system.
func buildProbesPolicy() admissionpolicy.Validating {
	return admissionpolicy.Validating{
		Name: ProbesName, Ruleless: true, Anywhere: true,
		Resources: []admissionpolicy.Resource{{Version: "v1", Resources: []string{"pods"}, Operations: []admissionv1.OperationType{admissionv1.Create}}},
		Only:      map[string]string{"by-operator": "request.userInfo.username == " + admissionpolicy.Quote(admissionpolicy.OperatorUser)},
		Rules: []admissionpolicy.Rule{{
			Name: "dry-run-only", Says: "croft's operator creates pods in dry runs only",
			Holds:   "has(request.dryRun) && request.dryRun",
			Message: `"croft's operator creates pods in dry runs only, to see whether the walls hold"`,
		}},
	}
}
