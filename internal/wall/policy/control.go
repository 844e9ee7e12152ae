package policy

import (
	"slices"

	"croft.dev/croft/internal/admission"
)

// The names of the policies on what RBAC alone should withhold, or cannot tell
// apart.
const (
	EndpointsPolicy    = "croft-endpoints"
	FinalizersPolicy   = "croft-finalizers"
	RoleBindingsPolicy = "croft-role-bindings"
	FluxPolicy         = "croft-flux"
	FluxSourcesPolicy  = "croft-flux-sources"
)

// Their rules.
const (
	EndpointsRule       = "written-by-controllers"
	FinalizersRule      = "finalizers"
	EverybodyRule       = "everybody"
	ServiceAccountRule  = "service-account"
	KubeConfigRule      = "kube-config"
	SourceNamespaceRule = "source-namespace"
	ProviderRule        = "provider"
)

// clusterWide is true where whoever asks may do so in every namespace, as the
// controllers of the cluster and of the platform may, and no tenant: so these
// need not be known by name.
const clusterWide = `authorizer.group(request.resource.group).resource(request.resource.resource).check("update").allowed() ||
	authorizer.group(request.resource.group).resource(request.resource.resource).check("patch").allowed()`

// checkEndpoints keeps traffic to Services from being sent to whatever address
// somebody writes (CVE-2021-25740).
func checkEndpoints() admission.Validating {
	return admission.Validating{
		Name:     EndpointsPolicy,
		Ruleless: true,
		Resources: []admission.Resource{
			{Version: "v1", Resources: []string{"endpoints"}, Operations: write},
			{Group: "discovery.k8s.io", Version: "v1", Resources: []string{"endpointslices"}, Operations: write},
		},
		Rules: []admission.Rule{{
			Name: EndpointsRule, Says: "Endpoints and EndpointSlices are written by controllers of the whole cluster",
			Holds:   clusterWide,
			Message: `"the addresses behind a Service are found for it: give the Service a selector"`,
		}},
	}
}

// finalizers that Kubernetes itself puts on objects that tenants write.
var finalizers = []string{"kubernetes.io/pvc-protection", "batch.kubernetes.io/job-tracking", "foregroundDeletion", "orphan"}

// checkFinalizers keeps namespaces from staying for ever. It looks at every kind
// of object, but only at those that have a finalizer; pods are asked the same
// with everything else that pods are asked.
func checkFinalizers(more []string) admission.Validating {
	return admission.Validating{
		Name:     FinalizersPolicy,
		Ruleless: true,
		Resources: []admission.Resource{
			{Group: "*", Version: "*", Resources: []string{"*"}, Operations: write},
		},
		Except: []admission.Resource{
			{Version: "v1", Resources: []string{"pods"}, Operations: write},
		},
		Only:      map[string]string{"has-finalizers": `object != null && has(object.metadata) && has(object.metadata.finalizers)`},
		Variables: refusedFinalizers(more),
		Rules:     []admission.Rule{finalizersRule()},
	}
}

func refusedFinalizers(more []string) []admission.Variable {
	return []admission.Variable{
		{Name: "finalizersBefore", Expression: before(`(has(oldObject.metadata.finalizers) ? oldObject.metadata.finalizers : [])`, `[]`)},
		{Name: "refusedFinalizers", Expression: `!has(object.metadata.finalizers) ? [] : object.metadata.finalizers.filter(f, !(f in ` +
			quoted(append(slices.Clone(finalizers), more...)) + `) && !(f in variables.finalizersBefore))`},
	}
}

func finalizersRule() admission.Rule {
	return admission.Rule{
		Name: FinalizersRule, Says: "tenants put no finalizers on their objects but Kubernetes' own and the Platform's finalizers",
		Holds:   `variables.refusedFinalizers.size() == 0 || ` + clusterWide,
		Message: `"metadata.finalizers: " + ` + some("variables.refusedFinalizers", 3) + ` + " would keep the namespace from going: remove it; a platform admin allows it by the Platform's finalizers"`,
	}
}

// checkRoleBindings keeps tenants from opening their namespaces to everybody.
func checkRoleBindings(admins []string) admission.Validating {
	return admission.Validating{
		Name:     RoleBindingsPolicy,
		Ruleless: true,
		Only:     admission.NotByPlatform(admins),
		Resources: []admission.Resource{
			{Group: "rbac.authorization.k8s.io", Version: "v1", Resources: []string{"rolebindings"}, Operations: write},
		},
		Variables: []admission.Variable{
			{Name: "everybody", Expression: `["system:authenticated", "system:unauthenticated", "system:anonymous", "system:serviceaccounts"]`},
			{Name: "before", Expression: before(`(has(oldObject.subjects) ? oldObject.subjects.map(s, s.name) : [])`, `[]`)},
		},
		Rules: []admission.Rule{{
			Name: EverybodyRule, Says: "roles are bound to somebody, not to everybody",
			Holds:   `!has(object.subjects) || object.subjects.all(s, s.kind == "ServiceAccount" || !(s.name in variables.everybody) || s.name in variables.before)`,
			Message: `"subjects: " + variables.everybody.join(", ") + " stand for everybody, other tenants included: name a group, a user or a service account"`,
		}},
	}
}

// checkFlux holds what Flux applies to the rights of a service account of the
// namespace, as its lock-down for several tenants does, also where its
// controllers were started without it.
func checkFlux() admission.Validating {
	return admission.Validating{
		Name: FluxPolicy,
		Resources: []admission.Resource{
			{Group: "kustomize.toolkit.fluxcd.io", Version: "*", Resources: []string{"kustomizations"}, Operations: write},
			{Group: "helm.toolkit.fluxcd.io", Version: "*", Resources: []string{"helmreleases"}, Operations: write},
		},
		Variables: []admission.Variable{
			{Name: "spec", Expression: `dyn(object).spec`},
			{Name: "unchanged", Expression: `request.operation == "UPDATE" && dyn(object).spec == dyn(oldObject).spec`},
			{Name: "sources", Expression: `(has(variables.spec.sourceRef) ? [variables.spec.sourceRef] : [])
				+ (has(variables.spec.chartRef) ? [variables.spec.chartRef] : [])
				+ (has(variables.spec.chart) ? [variables.spec.chart.spec.sourceRef] : [])`},
		},
		Rules: []admission.Rule{
			{
				Name: ServiceAccountRule, Says: "Flux applies with the rights of a service account of the namespace",
				Holds:   `variables.unchanged || has(variables.spec.serviceAccountName) && variables.spec.serviceAccountName != ""`,
				Message: `"spec.serviceAccountName: name a ServiceAccount of namespace " + namespaceObject.metadata.name + "; without one Flux would apply with its own rights"`,
			},
			{
				Name: KubeConfigRule, Says: "Flux applies to this cluster, by no kubeconfig",
				Holds:   `variables.unchanged || !has(variables.spec.kubeConfig)`,
				Message: `"spec.kubeConfig: it would be used by Flux's controller, around the service account: remove the field"`,
			},
			{
				Name: SourceNamespaceRule, Says: "Flux applies sources of the tenant's namespaces",
				Holds:   `variables.unchanged || variables.sources.all(s, !has(s.namespace) || s.namespace == "" || s.namespace in params.spec.namespaces)`,
				Message: `"spec.sourceRef.namespace: sources of tenant " + params.spec.tenant + " are in " + ` + listed("namespaces"),
			},
		},
	}
}

// checkFluxSources keeps sources from being fetched with the cloud identity of
// Flux's own controller.
func checkFluxSources() admission.Validating {
	return admission.Validating{
		Name: FluxSourcesPolicy,
		Resources: []admission.Resource{{
			Group: "source.toolkit.fluxcd.io", Version: "*",
			Resources: []string{"gitrepositories", "ocirepositories", "helmrepositories", "buckets"}, Operations: write,
		}},
		Variables: []admission.Variable{
			{Name: "spec", Expression: `dyn(object).spec`},
			{Name: "unchanged", Expression: `request.operation == "UPDATE" && dyn(object).spec == dyn(oldObject).spec`},
		},
		Rules: []admission.Rule{{
			Name: ProviderRule, Says: "sources are fetched with a secret or a service account of the namespace",
			Holds: `variables.unchanged || !has(variables.spec.provider) || variables.spec.provider == "generic" ||
				has(variables.spec.serviceAccountName) && variables.spec.serviceAccountName != ""`,
			Message: `"spec.provider: tenant " + params.spec.tenant + " would fetch with the platform's cloud identity: name a serviceAccountName, or use provider generic and a secretRef"`,
		}},
	}
}
