// Package certmanager defines the kinds of cert-manager that croft reads without a Go type,
// and evaluates their objects. It does no I/O.
package certmanager

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Group is the API group of issuers and certificates. The group of orders and challenges is
// acme.cert-manager.io.
const Group = "cert-manager.io"

// These are cert-manager's kinds.
var (
	ClusterIssuer = schema.GroupVersionKind{Group: Group, Version: "v1", Kind: "ClusterIssuer"}
	Certificate   = schema.GroupVersionKind{Group: Group, Version: "v1", Kind: "Certificate"}
	Request       = schema.GroupVersionKind{Group: Group, Version: "v1", Kind: "CertificateRequest"}
	Order         = schema.GroupVersionKind{Group: "acme." + Group, Version: "v1", Kind: "Order"}
	Challenge     = schema.GroupVersionKind{Group: "acme." + Group, Version: "v1", Kind: "Challenge"}
)

// GetServiceType returns the type of the Service that cert-manager creates for a solver of
// an issuer or of a challenge. The default is NodePort; it returns "" if no Service is
// created.
func GetServiceType(solver map[string]any) string {
	for _, by := range []string{"ingress", "gatewayHTTPRoute"} {
		settings, found, _ := unstructured.NestedMap(solver, "http01", by)
		if !found {
			continue
		}
		if serviceType, _ := settings["serviceType"].(string); serviceType != "" {
			return serviceType
		}
		return "NodePort"
	}
	return ""
}

// ListSolvers returns the solvers of an ACME issuer.
func ListSolvers(issuer *unstructured.Unstructured) []map[string]any {
	list, _, _ := unstructured.NestedSlice(issuer.Object, "spec", "acme", "solvers")
	var all []map[string]any
	for _, one := range list {
		if solver, ok := one.(map[string]any); ok {
			all = append(all, solver)
		}
	}
	return all
}
