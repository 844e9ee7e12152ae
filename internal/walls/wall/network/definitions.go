package network

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/declare/secondary"
)

// DefinitionKind is the kind from which Multus attaches pods. croft does not import its Go
// type, because that module depends on an old version of Kubernetes.
var DefinitionKind = schema.GroupVersionKind{
	Group: "k8s.cni.cncf.io", Version: "v1", Kind: "NetworkAttachmentDefinition",
}

// buildDefinitions returns the definitions of the networks that the tenant is granted, in each of
// its namespaces: Multus reads a pod's networks from the pod's own namespace, and the policy
// wall lets a pod name no other tenant's namespace.
func buildDefinitions(t *estate.Tenant) []client.Object {
	var all []client.Object
	for i := range t.Networks {
		n := &t.Networks[i]
		for _, d := range secondary.Definitions(n.Name, &n.SecondaryNetworkSpec) {
			for _, namespace := range t.Namespaces {
				all = append(all, buildDefinition(namespace, d))
			}
		}
	}
	return all
}

func buildDefinition(namespace string, d secondary.Definition) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"config": d.Config}}}
	o.SetGroupVersionKind(DefinitionKind)
	o.SetNamespace(namespace)
	o.SetName(d.Name)
	return o
}

// ListTenantKinds returns the kinds that a tenant's networks and connections need and that a
// cluster may lack.
func ListTenantKinds(t *estate.Tenant) []schema.GroupVersionKind {
	var all []schema.GroupVersionKind
	if len(t.Networks) > 0 {
		all = append(all, DefinitionKind)
	}
	grants := func(c estate.Connection) bool { return c.Callee == t.Name && len(c.Services) > 0 }
	if slices.ContainsFunc(t.Connections, grants) {
		all = append(all, GrantKind)
	}
	return all
}
