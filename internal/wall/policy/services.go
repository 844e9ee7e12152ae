package policy

import (
	admissionv1 "k8s.io/api/admissionregistration/v1"

	"croft.dev/croft/internal/admission"
)

// ServicesPolicy is the name of the policy on Services.
const ServicesPolicy = "croft-services"

// Its rules.
const (
	ServiceTypeRule  = "service-type"
	ExternalIPsRule  = "external-ips"
	ExternalNameRule = "external-name"
)

var write = []admissionv1.OperationType{admissionv1.Create, admissionv1.Update}

// checkServices keeps Services inside of the cluster, and out of other tenants'
// namespaces. What a Service was before it may stay.
func checkServices() admission.Validating {
	return admission.Validating{
		Name:      ServicesPolicy,
		Resources: []admission.Resource{{Version: "v1", Resources: []string{"services"}, Operations: write}},
		Variables: annotationVariables(
			admission.Variable{Name: "typeBefore", Expression: before(`oldObject.spec.type`, `""`)},
			admission.Variable{Name: "ipsBefore", Expression: before(`(has(oldObject.spec.externalIPs) ? oldObject.spec.externalIPs : [])`, `[]`)},
			admission.Variable{Name: "nameBefore", Expression: before(`(has(oldObject.spec.externalName) ? oldObject.spec.externalName : "")`, `""`)},
			admission.Variable{Name: "name", Expression: `has(object.spec.externalName) ? object.spec.externalName : ""`},
		),
		Rules: []admission.Rule{
			{
				Name: ServiceTypeRule, Says: "Services are of the tenant's serviceTypes",
				Holds: `object.spec.type in params.spec.serviceTypes || object.spec.type == variables.typeBefore`,
				Message: `"spec.type: " + object.spec.type + " is not among the types of Services of tenant " + params.spec.tenant + ": " + ` + listed("serviceTypes") +
					` + "; let traffic in by an Ingress or a route; a platform admin allows others by policy.serviceTypes"`,
			},
			{
				Name: ExternalIPsRule, Says: "Services claim no external addresses",
				Holds:   `!has(object.spec.externalIPs) || object.spec.externalIPs.all(ip, ip in variables.ipsBefore)`,
				Message: `"spec.externalIPs: a Service of a tenant claims no addresses, since these may be another's: remove the field"`,
			},
			{
				Name: ExternalNameRule, Says: "an ExternalName, where the tenant may have one, is not the name of a Service",
				Holds: `variables.name == variables.nameBefore || !variables.name.lowerAscii().matches("(^|[.])svc([.]|$)") && variables.name.contains(".")`,
				Message: `"spec.externalName: " + variables.name + " names a Service, which may be another tenant's: call the Service itself; tenant " +
					params.spec.tenant + " may name hosts outside of the cluster"`,
			},
			annotatedHostsRule(),
		},
	}
}
