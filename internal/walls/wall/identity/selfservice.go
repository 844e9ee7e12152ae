package identity

import (
	admissionv1 "k8s.io/api/admissionregistration/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/rules/admissionpolicy"
)

// SelfServicePolicy is the name of the policy on tenants' requests for namespaces.
const SelfServicePolicy = "croft-self-service"

// The rules of SelfServicePolicy.
const (
	SelfServiceRule   = "self-service"
	RequestedNameRule = "requested-name"
)

// checkSelfService refuses TenantNamespaces that croft would not grant, as far as the rules
// of the request's namespace show that. The controller checks again, with the conditions
// across tenants and objects: the number of requests, and the owner of the name.
func checkSelfService() admissionpolicy.Validating {
	return admissionpolicy.Validating{
		Name: SelfServicePolicy,
		Resources: []admissionpolicy.Resource{{
			Group: v1alpha1.GroupVersion.Group, Version: "*", Resources: []string{"tenantnamespaces"},
			Operations: []admissionv1.OperationType{admissionv1.Create},
		}},
		Rules: []admissionpolicy.Rule{
			{
				Name: SelfServiceRule, Exception: "selfService.namespaces",
				Summary: "TenantNamespaces are created in namespaces that a Tenant declares, " +
					"if its selfService allows any",
				Expression: `params.spec.selfService`,
				Message: `"tenant " + params.spec.tenant + " may not request namespaces here: ` +
					`request them in a namespace ` +
					`that the Tenant declares; a platform admin allows them by selfService.namespaces"`,
			},
			{
				Name:    RequestedNameRule,
				Summary: "the name of a requested namespace begins with the tenant's name and a hyphen",
				Expression: `object.metadata.name.startsWith(params.spec.tenant + "-") &&
					object.metadata.name.size() > params.spec.tenant.size() + 1`,
				Message: `"metadata.name: " + object.metadata.name + " must begin with " + params.spec.tenant + "-"`,
			},
		},
	}
}
