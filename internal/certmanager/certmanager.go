// Package certmanager has the kinds of cert-manager that croft reads without a Go type,
// and what it derives from them; no I/O.
package certmanager

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Group is the API group of issuers and certificates; that of orders and challenges is
// below it.
const Group = "cert-manager.io"

// Its kinds.
var (
	ClusterIssuer = schema.GroupVersionKind{Group: Group, Version: "v1", Kind: "ClusterIssuer"}
	Certificate   = schema.GroupVersionKind{Group: Group, Version: "v1", Kind: "Certificate"}
	Request       = schema.GroupVersionKind{Group: Group, Version: "v1", Kind: "CertificateRequest"}
	Order         = schema.GroupVersionKind{Group: "acme." + Group, Version: "v1", Kind: "Order"}
	Challenge     = schema.GroupVersionKind{Group: "acme." + Group, Version: "v1", Kind: "Challenge"}
)

// SolverService is the type of the Service that cert-manager makes for a solver of an
// issuer or of a challenge, by default NodePort; "" if it makes none.
func SolverService(solver map[string]any) string {
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

// Solvers are the solvers of an ACME issuer.
func Solvers(issuer *unstructured.Unstructured) []map[string]any {
	list, _, _ := unstructured.NestedSlice(issuer.Object, "spec", "acme", "solvers")
	var all []map[string]any
	for _, one := range list {
		if solver, ok := one.(map[string]any); ok {
			all = append(all, solver)
		}
	}
	return all
}
