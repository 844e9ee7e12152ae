package policy

import (
	admissionv1 "k8s.io/api/admissionregistration/v1"

	"croft.dev/croft/internal/admission"
)

// The names of the policies on what tenants share without seeing it.
const (
	ClaimsPolicy      = "croft-volume-claims"
	DisruptionPolicy  = "croft-disruption-budgets"
	TerminationPolicy = "croft-termination"
)

// Their rules.
const (
	VolumeRule       = "volume-name"
	StorageClassRule = "storage-class"
	SelectorRule     = "volume-selector"
	DisruptionRule   = "allows-disruption"
)

// checkClaims keeps claims from taking a volume that is not theirs. The volume
// controller writes a claim's volume when it has found one: it may change the
// claims of the whole cluster, which no tenant may.
func checkClaims() admission.Validating {
	return admission.Validating{
		Name:      ClaimsPolicy,
		Resources: []admission.Resource{{Version: "v1", Resources: []string{"persistentvolumeclaims"}, Operations: write}},
		Variables: []admission.Variable{
			{Name: "new", Expression: `request.operation == "CREATE"`},
			{Name: "volume", Expression: `has(object.spec.volumeName) ? object.spec.volumeName : ""`},
			{Name: "volumeBefore", Expression: before(`(has(oldObject.spec.volumeName) ? oldObject.spec.volumeName : "")`, `""`)},
		},
		Rules: []admission.Rule{
			{
				Name: VolumeRule, Says: "claims do not choose their volume",
				Holds: `variables.volume == variables.volumeBefore ||
					authorizer.group("").resource("persistentvolumeclaims").check("update").allowed()`,
				Message: `"spec.volumeName: the volume that a claim gets is found for it, since another may be another tenant's: remove the field"`,
			},
			{
				Name: SelectorRule, Says: "claims do not select volumes that exist already",
				Holds:   `!variables.new || !has(object.spec.selector)`,
				Message: `"spec.selector: it would select a volume that exists already, which may be another tenant's: remove the field"`,
			},
			{
				Name: StorageClassRule, Says: "claims are of the tenant's storageClasses",
				Holds: `!variables.new || !has(object.spec.storageClassName) || (object.spec.storageClassName == "" ? "" in params.spec.storageClasses : ` +
					allowed("storageClasses", "object.spec.storageClassName") + `)`,
				Message: `"spec.storageClassName: " + (object.spec.storageClassName == "" ? "the empty class asks for a volume that exists already" :
					object.spec.storageClassName + " is not among the storage classes of the tenant") + "; storage classes of tenant " + params.spec.tenant + ": " + ` +
					listed("storageClasses") + ` + "; a platform admin allows others by policy.storageClasses"`,
			},
		},
	}
}

// checkDisruption refuses budgets that no node could ever be emptied under. The
// pool's terminationGracePeriod ends those that come to the same by numbers.
func checkDisruption() admission.Validating {
	return admission.Validating{
		Name:      DisruptionPolicy,
		Resources: []admission.Resource{{Group: "policy", Version: "v1", Resources: []string{"poddisruptionbudgets"}, Operations: write}},
		Rules: []admission.Rule{{
			Name: DisruptionRule, Says: "a PodDisruptionBudget lets at least one pod go",
			Holds: `!(has(object.spec.maxUnavailable) && string(object.spec.maxUnavailable).matches("^0+%?$") ||
				has(object.spec.minAvailable) && string(object.spec.minAvailable).matches("^0*100%$")) ||
				request.operation == "UPDATE" && object.spec == oldObject.spec`,
			Message: `"spec: nodes of tenant " + params.spec.tenant + " could never be replaced: let at least one pod go by maxUnavailable: 1"`,
		}},
	}
}

// checkTermination holds whoever deletes or evicts a pod to the grace period that
// the pod itself could have asked for. Of a pod without a node the API server
// says none here, and gives it none.
func checkTermination() admission.Validating {
	return admission.Validating{
		Name: TerminationPolicy,
		Resources: []admission.Resource{
			{Version: "v1", Resources: []string{"pods"}, Operations: []admissionv1.OperationType{admissionv1.Delete}},
			{Version: "v1", Resources: []string{"pods/eviction"}, Operations: []admissionv1.OperationType{admissionv1.Create}},
		},
		Variables: []admission.Variable{
			{Name: "options", Expression: `request.operation == "DELETE" ? dyn(request.options) :
				has(object.deleteOptions) ? dyn(object.deleteOptions) : dyn({})`},
			{Name: "seconds", Expression: `variables.options != null && has(variables.options.gracePeriodSeconds) ? variables.options.gracePeriodSeconds : 0`},
		},
		Rules: []admission.Rule{{
			Name: GracePeriodRule, Says: "pods are deleted and evicted within the tenant's maxTerminationGracePeriodSeconds",
			Holds: `variables.seconds <= params.spec.maxTerminationGracePeriodSeconds`,
			Message: `"gracePeriodSeconds: " + string(variables.seconds) + " is more than the " + string(params.spec.maxTerminationGracePeriodSeconds) +
				" that pods of tenant " + params.spec.tenant + " may take to end: lower it"`,
		}},
	}
}
