package gatekeeper

import (
	"fmt"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
)

// requiredRequest are requests that a webhook must receive.
type requiredRequest struct {
	group, kind, resource string
	// version is set for kinds that every API server has. For other kinds, all served
	// versions are checked.
	version    string
	operations []admissionv1.OperationType
}

var (
	create = []admissionv1.OperationType{admissionv1.Create}
	update = []admissionv1.OperationType{admissionv1.Update}
	write  = []admissionv1.OperationType{admissionv1.Create, admissionv1.Update}
)

// mutated are the requests that croft's mutators change. debugged are the requests that add
// debug containers.
var (
	mutated = []requiredRequest{
		{"", "Pod", "pods", "v1", create},
		{"apps", "DaemonSet", "daemonsets", "v1", write},
	}
	debugged = []requiredRequest{{"", "Pod", "pods/ephemeralcontainers", "v1", update}}
)

// constrained are the requests that croft's constraints check.
var constrained = []requiredRequest{
	{"", "Pod", "pods", "v1", write},
	{"", "Service", "services", "v1", write},
	{"", "Secret", "secrets", "v1", write},
	{"", "ConfigMap", "configmaps", "v1", write},
	{"", "PersistentVolumeClaim", "persistentvolumeclaims", "v1", write},
	{"networking.k8s.io", "Ingress", "ingresses", "v1", write},
	{"gateway.networking.k8s.io", "Gateway", "gateways", "", write},
	{"gateway.networking.k8s.io", "HTTPRoute", "httproutes", "", write},
	{"gateway.networking.k8s.io", "GRPCRoute", "grpcroutes", "", write},
	{"gateway.networking.k8s.io", "TLSRoute", "tlsroutes", "", write},
	{"gateway.networking.k8s.io", "TCPRoute", "tcproutes", "", write},
	{"gateway.networking.k8s.io", "UDPRoute", "udproutes", "", write},
	{"gateway.networking.k8s.io", "ListenerSet", "listenersets", "", write},
	{"cert-manager.io", "Certificate", "certificates", "", write},
}

// findUnmatchedRequests returns the requests that the webhook's rules do not match, such as UPDATE of
// services.
func (w webhook) findUnmatchedRequests(in Installation, all []requiredRequest) []string {
	var unseen []string
	for _, n := range all {
		versions := n.listVersions(in)
		for _, operation := range n.operations {
			seen := func(version string) bool {
				return slices.ContainsFunc(w.rules, func(r admissionv1.RuleWithOperations) bool {
					return matchesRequest(r, n.group, version, n.resource, operation)
				})
			}
			left := slices.DeleteFunc(slices.Clone(versions), seen)
			// Unless the match policy is Exact, the API server converts an object of one
			// version for a webhook that matches another.
			if len(left) > 0 && (w.exact || len(left) == len(versions)) {
				unseen = append(unseen, fmt.Sprintf("%s of %s", operation, n.resource))
			}
		}
	}
	return unseen
}

func (n requiredRequest) listVersions(in Installation) []string {
	if n.version != "" {
		return []string{n.version}
	}
	var served []string
	for _, kind := range in.Served {
		if kind.Group == n.group && kind.Kind == n.kind {
			served = append(served, kind.Version)
		}
	}
	return served
}

// matchesRequest reports whether a rule matches a request in a namespace.
func matchesRequest(r admissionv1.RuleWithOperations, group, version, resource string, operation admissionv1.OperationType) bool {
	return (slices.Contains(r.Operations, admissionv1.OperationAll) || slices.Contains(r.Operations, operation)) &&
		containsValue(r.APIGroups, group) && containsValue(r.APIVersions, version) &&
		slices.ContainsFunc(r.Resources, func(pattern string) bool { return matchesResource(pattern, resource) }) &&
		valueOrDefault(r.Scope, admissionv1.AllScopes) != admissionv1.ClusterScope
}

func containsValue(values []string, value string) bool {
	return slices.Contains(values, "*") || slices.Contains(values, value)
}

// matchesResource reports whether a pattern such as pods, *, */* or pods/* matches a resource or a
// subresource. A single star matches no subresource.
func matchesResource(pattern, resource string) bool {
	name, sub, _ := strings.Cut(resource, "/")
	patternName, patternSub, _ := strings.Cut(pattern, "/")
	return (patternName == "*" || patternName == name) && (patternSub == sub || patternSub == "*")
}
