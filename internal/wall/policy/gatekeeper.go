package policy

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/internal/admissionpolicy"
	"croft.dev/croft/internal/estate"
)

// constraints returns the rules that Gatekeeper enforces too, if it is the placement engine:
// the rules on Services, hosts, certificates and annotations. Platforms commonly use Gatekeeper
// for such rules.
func constraints() []admissionpolicy.Constrained {
	return []admissionpolicy.Constrained{
		{Kind: "CroftServices", Matches: map[string][]string{"": {"Service"}}, Audits: true, Policy: checkServices()},
		{
			Kind: "CroftIngresses", Matches: map[string][]string{"networking.k8s.io": {"Ingress"}},
			Audits: true, Policy: checkIngresses(),
		},
		{
			Kind:    "CroftRoutes",
			Matches: map[string][]string{"gateway.networking.k8s.io": {"HTTPRoute", "GRPCRoute", "TLSRoute"}},
			Audits:  true, Policy: checkRoutes(),
		},
		{
			Kind: "CroftGateways", Matches: map[string][]string{"gateway.networking.k8s.io": {"Gateway"}},
			Audits: true, Policy: checkGateways(),
		},
		{
			Kind: "CroftCertificates", Matches: map[string][]string{"cert-manager.io": {"Certificate"}},
			Audits: true, Policy: checkCertificates(),
		},
		{
			Kind: "CroftAnnotations", Matches: map[string][]string{
				"":                          {"Service", "Secret", "ConfigMap", "PersistentVolumeClaim"},
				"networking.k8s.io":         {"Ingress"},
				"gateway.networking.k8s.io": {"Gateway", "HTTPRoute", "GRPCRoute", "TLSRoute"},
			},
			Audits: true, Policy: checkAnnotations(),
		},
	}
}

// pullPolicyMutators set the tenant's pull policy on containers and image volumes, if
// Gatekeeper is the placement engine. Gatekeeper cannot compare a container's policy with
// several: if a tenant has more than one, a container with another policy is refused.
func pullPolicyMutators(t *estate.Tenant) []client.Object {
	if len(t.Allowances.ImagePullPolicies) != 1 {
		return nil
	}
	var all []client.Object
	for _, containers := range []struct{ name, list, operation string }{
		{"pull", "containers", "CREATE"},
		{"pull-init", "initContainers", "CREATE"},
		// Ephemeral containers are added to an existing pod.
		{"pull-debug", "ephemeralContainers", "UPDATE"},
	} {
		all = append(all, admissionpolicy.Mutator{
			Kind: "Assign", Name: containers.name, Version: "v1", ObjectKind: "Pod",
			Operations: []string{containers.operation},
			Location:   "spec." + containers.list + "[name: *].imagePullPolicy",
			Value:      string(t.Allowances.ImagePullPolicies[0]),
		}.Object(t.Name, t.Namespaces))
	}
	return append(all, admissionpolicy.Mutator{
		Kind: "Assign", Name: "pull-volumes", Version: "v1", ObjectKind: "Pod", Operations: []string{"CREATE"},
		Location: "spec.volumes[name: *].image.pullPolicy", Within: "spec.volumes[name: *].image",
		Value: string(t.Allowances.ImagePullPolicies[0]),
	}.Object(t.Name, t.Namespaces))
}
