package policy

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/rules/admissionpolicy"
)

// buildConstraints returns the rules that Gatekeeper enforces too, if it is the placement engine:
// the rules on Services, hosts, certificates and annotations. Platforms commonly use Gatekeeper
// for such rules.
func buildConstraints(p *estate.Platform) []admissionpolicy.Constrained {
	return []admissionpolicy.Constrained{
		{
			Kind: "CroftServices", MatchedKinds: map[string][]string{"": {"Service"}}, CanAudit: true,
			Policy: buildPolicy(p, "croft-services"),
		},
		{
			Kind: "CroftIngresses", MatchedKinds: map[string][]string{"networking.k8s.io": {"Ingress"}},
			CanAudit: true, Policy: buildPolicy(p, "croft-ingresses"),
		},
		{
			Kind: "CroftRoutes",
			MatchedKinds: map[string][]string{
				"gateway.networking.k8s.io": {"HTTPRoute", "GRPCRoute", "TLSRoute", "TCPRoute", "UDPRoute"},
			},
			CanAudit: true, Policy: buildPolicy(p, "croft-routes"),
		},
		{
			Kind:         "CroftGateways",
			MatchedKinds: map[string][]string{"gateway.networking.k8s.io": {"Gateway", "ListenerSet"}},
			CanAudit:     true, Policy: buildPolicy(p, "croft-gateways"),
		},
		{
			Kind: "CroftCertificates", MatchedKinds: map[string][]string{"cert-manager.io": {"Certificate"}},
			CanAudit: true, Policy: buildPolicy(p, "croft-certificates"),
		},
		{
			Kind: "CroftAnnotations", MatchedKinds: map[string][]string{
				"":                          {"Service", "Secret", "ConfigMap", "PersistentVolumeClaim"},
				"networking.k8s.io":         {"Ingress"},
				"gateway.networking.k8s.io": {"Gateway", "ListenerSet", "HTTPRoute", "GRPCRoute", "TLSRoute"},
			},
			CanAudit: true, Policy: buildPolicy(p, "croft-annotations"),
		},
	}
}

// buildPullPolicyMutators set the tenant's pull policy on containers and image volumes, if
// Gatekeeper is the placement engine. Gatekeeper cannot compare a container's policy with
// several: if a tenant has more than one, a container with another policy is refused.
func buildPullPolicyMutators(t *estate.Tenant) []client.Object {
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
		Location: "spec.volumes[name: *].image.pullPolicy", RequiredPath: "spec.volumes[name: *].image",
		Value: string(t.Allowances.ImagePullPolicies[0]),
	}.Object(t.Name, t.Namespaces))
}
