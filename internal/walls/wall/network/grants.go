package network

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// GrantKind is the kind with which a namespace allows references from other namespaces. croft
// writes it in the version that every release of the Gateway API serves since v0.6.
var GrantKind = schema.GroupVersionKind{Group: "gateway.networking.k8s.io", Version: "v1beta1", Kind: "ReferenceGrant"}

// routeKinds are the kinds of routes that send requests to Services. A ReferenceGrant has at most
// 16 entries in from, so each has the kinds of one namespace.
var routeKinds = []string{"HTTPRoute", "GRPCRoute", "TLSRoute", "TCPRoute", "UDPRoute"}

// buildGrants writes the ReferenceGrants for the routes of other tenants to which both have agreed,
// one for each namespace of the caller. Gateway controllers stop sending requests when it is deleted.
func (t terms) buildGrants(namespace string) []client.Object {
	var all []client.Object
	for _, c := range t.listCallers() {
		to := listGrantedServices(c.Services, namespace)
		if len(to) == 0 {
			continue
		}
		for _, caller := range c.CallerNamespaces {
			from := make([]any, len(routeKinds))
			for i, kind := range routeKinds {
				from[i] = tree{"group": GrantKind.Group, "kind": kind, "namespace": caller}
			}
			o := &unstructured.Unstructured{Object: tree{"spec": tree{"from": from, "to": slices.Clone(to)}}}
			o.SetGroupVersionKind(GrantKind)
			o.SetNamespace(namespace)
			o.SetName(CallerPolicy + "-" + caller)
			all = append(all, markAgreed(o, c.Caller, c))
		}
	}
	return all
}

// listGrantedServices returns the Services of a namespace as entries of a ReferenceGrant.
func listGrantedServices(services []string, namespace string) []any {
	var all []any
	for _, service := range services {
		if name, ok := strings.CutPrefix(service, namespace+"/"); ok {
			all = append(all, tree{"group": "", "kind": "Service", "name": name})
		}
	}
	return all
}
