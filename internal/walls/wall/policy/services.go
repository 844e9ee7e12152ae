package policy

import (
	admissionv1 "k8s.io/api/admissionregistration/v1"

	"croft.dev/croft/internal/rules/admissionpolicy"
)

// ServicesPolicy is the name of the policy on Services.
const ServicesPolicy = "croft-services"

// The names of its rules.
const (
	ServiceTypeRule  = "service-type"
	ExternalIPsRule  = "external-ips"
	ExternalNameRule = "external-name"
	ClusterIPRule    = "cluster-ip"
)

var write = []admissionv1.OperationType{admissionv1.Create, admissionv1.Update}

// serviceAdvice is the expression for the remedy in a message about a Service's type. Add-ons
// create Services for tenants' objects: their authors read the message in events and logs.
const serviceAdvice = `(!has(object.metadata.labels) ? "let traffic in by an Ingress or a route; " :
	"acme.cert-manager.io/http01-solver" in object.metadata.labels ?
		"cert-manager created it: set serviceType: ClusterIP in http01.ingress, or in http01.gatewayHTTPRoute, ` +
	`of the issuer's solvers; " :
	"gateway.networking.k8s.io/gateway-name" in object.metadata.labels ?
		"it was created for a Gateway: use a class that creates a ClusterIP; " :
	"serving.knative.dev/route" in object.metadata.labels ?
		"Knative created it for a Route, and Routes do not work in a tenant's namespace (docs/reference/addons.md); " :
	"let traffic in by an Ingress or a route; ")`

// checkServices allows only Services that are not reachable from outside of the cluster and
// do not point to other tenants' namespaces. Existing fields are allowed.
func checkServices() admissionpolicy.Validating {
	return admissionpolicy.Validating{
		Name:      ServicesPolicy,
		Resources: []admissionpolicy.Resource{{Version: "v1", Resources: []string{"services"}, Operations: write}},
		Bounds:    serviceBounds,
		Variables: []admissionpolicy.Variable{
			{Name: "typeBefore", Expression: readBefore(`oldObject.spec.type`, `""`)},
			{
				Name:       "ipsBefore",
				Expression: readBefore(`(has(oldObject.spec.externalIPs) ? oldObject.spec.externalIPs : [])`, `[]`),
			},
			{
				Name:       "nameBefore",
				Expression: readBefore(`(has(oldObject.spec.externalName) ? oldObject.spec.externalName : "")`, `""`),
			},
			{Name: "clusterIPs", Expression: `(has(object.spec.clusterIPs) ? object.spec.clusterIPs : []) +
				(has(object.spec.clusterIP) ? [object.spec.clusterIP] : [])`},
			{
				Name:       "clusterIPsBefore",
				Expression: readBefore(`(has(oldObject.spec.clusterIPs) ? oldObject.spec.clusterIPs : [])`, `[]`),
			},
			{Name: "refusedIPs", Expression: `variables.clusterIPs.filter(ip,
				!(ip in ["", "None"]) && !(ip in variables.clusterIPsBefore) && !` +
				matchAllowed("clusterIPs", "ip") + `)`},
			{Name: "name", Expression: `has(object.spec.externalName) ? object.spec.externalName : ""`},
		},
		Rules: []admissionpolicy.Rule{
			{
				Name: ServiceTypeRule, Summary: "Services have one of the tenant's serviceTypes",
				Expression: `object.spec.type in params.spec.serviceTypes || object.spec.type == variables.typeBefore`,
				Exception:  "policy.serviceTypes",
				Message: `"spec.type: " + object.spec.type + " is not among the types of Services of tenant " +
					params.spec.tenant + ": " + ` + formatAllowed("serviceTypes") +
					` + "; " + ` + serviceAdvice + ` + "a platform admin allows others by policy.serviceTypes"`,
			},
			{
				Name: ExternalIPsRule, Summary: "Services claim no external addresses",
				Expression: `!has(object.spec.externalIPs) || ` +
					`object.spec.externalIPs.all(ip, ip in variables.ipsBefore)`,
				Message: `"spec.externalIPs: a Service of a tenant claims no addresses, ` +
					`since these may belong to others: remove the field"`,
			},
			{
				Name:    ExternalNameRule,
				Summary: "an ExternalName, where the tenant may have one, is a host outside of the cluster",
				Expression: `variables.name == "" || variables.name == variables.nameBefore ||
					[variables.name.lowerAscii()].exists(n, ` + matchOutsideHost("n") + `)`,
				Message: `"spec.externalName: " + variables.name +
					" is an address or a host inside of the cluster, which may belong to another tenant: ` +
					`call the Service itself; tenant " +
					params.spec.tenant + " may name hosts outside of the cluster" +
					(has(object.metadata.labels) && "serving.knative.dev/route" in object.metadata.labels ?
						"; Routes of Knative do not work in a tenant's namespace (docs/reference/addons.md)" : "")`,
			},
			{
				Name: ClusterIPRule, Summary: "Services choose only addresses of the tenant's clusterIPs",
				// A chosen address and an allocated one look the same. The managed fields
				// tell them apart. They are absent if the API server could not track them.
				Expression: `variables.refusedIPs.size() == 0 || !(request.operation in ["CREATE", "UPDATE"]) ||
					has(object.metadata.managedFields) && object.metadata.managedFields.size() > 0 &&
					!object.metadata.managedFields.exists(m,
						has(m.fieldsV1) && "f:spec" in dyn(m.fieldsV1) &&
						["f:clusterIP", "f:clusterIPs"].exists(f, f in dyn(m.fieldsV1)["f:spec"]))`,
				Exception: "policy.clusterIPs",
				Message: `"spec.clusterIP: " + variables.refusedIPs[0] +
					" may belong to another Service, or to the cluster's DNS: remove the field, ` +
					`and the cluster gives the Service an address; addresses that tenant " +
					params.spec.tenant + " may choose: " + ` + formatAllowed("clusterIPs") +
					` + "; a platform admin allows others by policy.clusterIPs"`,
			},
		},
	}
}
