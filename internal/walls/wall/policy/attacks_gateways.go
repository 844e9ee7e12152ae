package policy

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"croft.dev/croft/internal/rules/attack"
)

const gateway = "gateway.networking.k8s.io"

// setField writes a field of an attack's object. It cannot fail, since these objects consist of
// maps, lists and strings only.
func setField(u *unstructured.Unstructured, value any, path ...string) {
	_ = unstructured.SetNestedField(u.Object, value, path...)
}

// makeRoute returns a route for the given hosts, or for every host if none are given.
func (s scene) makeRoute(kind, name string, hosts ...string) *unstructured.Unstructured {
	spec := map[string]any{
		"parentRefs": []any{map[string]any{"name": "web"}},
		"rules":      []any{map[string]any{"backendRefs": []any{map[string]any{"name": "web", "port": int64(80)}}}},
	}
	if len(hosts) > 0 {
		list := make([]any, len(hosts))
		for i, h := range hosts {
			list[i] = h
		}
		spec["hostnames"] = list
	}
	return attack.NewCustomObject(gateway+"/v1", kind, s.own, "croft-"+name, spec)
}

// makeGateway returns a Gateway with a listener for a host.
func (s scene) makeGateway(name, host string) *unstructured.Unstructured {
	one := map[string]any{"name": "http", "port": int64(80), "protocol": "HTTP"}
	if host != "" {
		one["hostname"] = host
	}
	return attack.NewCustomObject(gateway+"/v1", "Gateway", s.own, "croft-"+name, map[string]any{"gatewayClassName": s.findGatewayClass(), "listeners": []any{one}})
}

// findGatewayClass returns a class of Gateways that the tenant may use.
func (s scene) findGatewayClass() string {
	if classes := s.attacker.Allowances.GatewayClasses; len(classes) > 0 && classes[0] != "*" {
		return classes[0]
	}
	return "croft-verify"
}
