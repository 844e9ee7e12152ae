package policy

import (
	"strconv"

	admissionv1 "k8s.io/api/admissionregistration/v1"

	"croft.dev/croft/internal/rules/admissionpolicy"
)

// NamespacesPolicy is the name of the policy on the tenants' Namespace objects.
const NamespacesPolicy = "croft-namespaces"

// The names of its rules.
const (
	NamespaceMarksRule    = "marks"
	NamespaceFinalizeRule = "finalize"
	NamespaceDeletionRule = "deletion"
)

// markKeys matches the keys of protected labels and annotations: see checkNamespaces.
const markKeys = `^croft[.]dev/|^app[.]kubernetes[.]io/managed-by$|^pod-security[.]kubernetes[.]io/` +
	`|^resource[.]kubernetes[.]io/|^scheduler[.]alpha[.]kubernetes[.]io/|^admission[.]gatekeeper[.]sh/`

// checkNamespaces protects the labels and annotations of tenants' namespaces that croft,
// Kubernetes and other components evaluate. A namespace could choose by its own labels which
// policies match it, so this policy matches all namespaces.
func checkNamespaces(admins []string) admissionpolicy.Validating {
	only := admissionpolicy.NotByPlatform(admins)
	// A namespace with more labels or annotations than the bound may belong to a tenant.
	only["of-a-tenant"] = replaceWords(`[object, oldObject].exists(n, n != null && (
		has(n.metadata.labels) &&
			(n.metadata.labels.size() > MOST || n.metadata.labels.exists(k, k.startsWith("croft.dev/"))) ||
		has(n.metadata.annotations) &&
			(n.metadata.annotations.size() > MOST || n.metadata.annotations.exists(k, k.startsWith("croft.dev/")))))`,
		"MOST", strconv.Itoa(mostMarks))
	marks := func(object, absent string) string {
		return replaceWords(`dyn(ABSENT ? [] :
			(has(OBJECT.metadata.labels)
				? OBJECT.metadata.labels.transformList(k, v, k.matches(variables.keys),
					"label " + k + "=" + v) : [])
			+ (has(OBJECT.metadata.annotations)
				? OBJECT.metadata.annotations.transformList(k, v, k.matches(variables.keys),
					"annotation " + k + "=" + v) : []))`,
			"OBJECT", object, "ABSENT", absent)
	}
	return admissionpolicy.Validating{
		Name:               NamespacesPolicy,
		IgnoresTenantRules: true,
		ClusterWide:        true,
		MatchConditions:    only,
		Resources: []admissionpolicy.Resource{
			{
				Version: "v1", Resources: []string{"namespaces"},
				Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update, admissionv1.Delete},
			},
			{
				Version: "v1", Resources: []string{"namespaces/status", "namespaces/finalize"},
				Operations: []admissionv1.OperationType{admissionv1.Update},
			},
		},
		Bounds: markBounds,
		Variables: []admissionpolicy.Variable{
			{Name: "finalizes", Expression: `has(request.subResource) && request.subResource == "finalize"`},
			{Name: "keys", Expression: `"` + markKeys + `"`},
			{Name: "marks", Expression: marks("object", `object == null`)},
			{Name: "marksBefore", Expression: marks("oldObject", `!`+admissionpolicy.Comparable)},
		},
		Rules: []admissionpolicy.Rule{
			{
				Name:    NamespaceMarksRule,
				Summary: "only the platform writes the labels and annotations that put a namespace behind the walls",
				Expression: `request.operation == "DELETE" || variables.finalizes ||
					(request.operation == "CREATE" || ` + admissionpolicy.Comparable + `) &&
					variables.marks.all(m, m in variables.marksBefore) &&
					variables.marksBefore.all(m, m in variables.marks)`,
				Message: `"metadata: the labels and annotations that put namespace " + request.name +
					" behind the walls (" + ` +
					// The rules in an annotation can be longer than the maximum length of a
					// message.
					formatFirst(`(variables.marks.filter(m, !(m in variables.marksBefore)) +
						variables.marksBefore.filter(m, !(m in variables.marks)))`+
						`.map(m, string(m)).map(m, m.size() > 100 ? m.substring(0, 100) + "..." : m)`, 3) +
					` + ") are written only by platform admins: leave them unchanged"`,
			},
			{
				Name: NamespaceFinalizeRule, Summary: "only Kubernetes finalizes a tenant's namespace",
				Expression: `!variables.finalizes`,
				LoopFree:   true,
				Message:    `"namespace " + request.name + " is finalized only by Kubernetes, when it is empty"`,
			},
			{
				Name: NamespaceDeletionRule, Summary: "only the platform deletes a tenant's namespace",
				Expression: `request.operation != "DELETE"`,
				LoopFree:   true,
				Message: `"namespace " + request.name + " is deleted only by platform admins: ` +
					`ask one to delete the Tenant, or to remove the namespace from it"`,
			},
		},
	}
}
