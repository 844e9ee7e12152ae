package policy

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/internal/rules/attack"
)

const gateway = "gateway.networking.k8s.io"

// buildGatewayAttacks do the same with the Gateway API and cert-manager, if the cluster has them.
func (s scene) buildGatewayAttacks() []attack.Attack {
	var all []attack.Attack
	for _, route := range []struct{ kind, name string }{{"HTTPRoute", "http"}, {"GRPCRoute", "grpc"}, {"TLSRoute", "tls"}} {
		object := func(name string, hosts ...string) *unstructured.Unstructured {
			return s.makeRoute(route.kind, name, hosts...)
		}
		by := attack.ByPolicy(RoutesPolicy, HostsRule)
		all = append(all,
			attack.NewCreate("route-other-host-by-"+route.name, "route another tenant's host by a "+route.kind, by, object("route-other-host", s.otherHost)))
		if route.kind != "TLSRoute" { // a TLSRoute must have hostnames
			// A Gateway of another namespace may listen for every host.
			toOther := func(u *unstructured.Unstructured) {
				setField(u, []any{map[string]any{"name": "web"}, map[string]any{"name": "web", "namespace": s.other}}, "spec", "parentRefs")
			}
			every := object("route-every-host")
			toOther(every)
			all = append(all,
				attack.NewCreate("route-every-host-by-"+route.name, "route every host of another's Gateway by a "+route.kind+" without hostnames", by, every),
				attack.NewUpdate("route-every-host-later-by-"+route.name, "route every host of another's Gateway by a "+route.kind+" of one's own Gateway without hostnames", by,
					object("route-every-host-later-"+route.name), toOther),
				attack.NewCreate("route-hosts-of-own-gateway-by-"+route.name, "route every host of one's own Gateway by a "+route.kind+" without hostnames", attack.Nobody, object("route-hosts-of-own-gateway")))
		}
		if s.host == "" {
			continue
		}
		all = append(all,
			attack.NewCreate("route-other-host-too-by-"+route.name, "route another tenant's host, together with one's own, by a "+route.kind, by, object("route-other-host-too", s.host, s.otherHost)),
			attack.NewUpdate("route-other-host-later-by-"+route.name, "route another tenant's host by an existing "+route.kind, by, object("route-other-host-later-"+route.name, s.host),
				func(u *unstructured.Unstructured) { setField(u, []any{s.otherHost}, "spec", "hostnames") }),
			attack.NewCreate("route-own-host-by-"+route.name, "route a host of one's own by a "+route.kind, attack.Nobody, object("route-own-host", s.host)))
		announced := object("announce-route", s.host)
		announced.SetAnnotations(map[string]string{externalDNS: s.otherHost})
		all = append(all, attack.NewCreate("announce-other-host-by-"+route.name, "have external-dns point another tenant's host at a "+route.kind, attack.ByPolicy(AnnotationsPolicy, AnnotatedHostsRule), announced))
	}
	listener := s.makeGateway
	refused := func(name, summary, rule string, object client.Object) {
		all = append(all, attack.NewCreate(name, summary, attack.ByPolicy(GatewaysPolicy, rule), object))
	}
	refused("listen-for-other-host", "listen for another tenant's host by a Gateway", HostsRule, listener("listen-for-other-host", s.otherHost))
	refused("listen-for-every-host", "listen for every host by a Gateway", HostsRule, listener("listen-for-every-host", ""))
	if s.host != "" {
		refused("claim-address-by-gateway", "claim an address by a Gateway", AddressesRule, listener("claim-address", s.host, func(u *unstructured.Unstructured) {
			setField(u, []any{map[string]any{"type": "IPAddress", "value": "203.0.113.7"}}, "spec", "addresses")
		}))
		announced := listener("announce-gateway", s.host)
		announced.SetAnnotations(map[string]string{externalDNS: s.otherHost})
		all = append(all, attack.NewCreate("announce-other-host-by-gateway", "have external-dns point another tenant's host at a Gateway", attack.ByPolicy(AnnotationsPolicy, AnnotatedHostsRule), announced))
		if !slices.Contains(s.attacker.Allowances.GatewayClasses, "*") {
			refused("choose-gateway-class", "choose a Gateway class that is not the tenant's", ClassRule, listener("choose-gateway-class", s.host, func(u *unstructured.Unstructured) {
				setField(u, "internal", "spec", "gatewayClassName")
			}))
		}
		all = append(all, attack.NewUpdate("listen-for-other-host-later", "listen for another tenant's host by an existing Gateway", attack.ByPolicy(GatewaysPolicy, HostsRule),
			listener("listen-for-other-host-later", s.host), func(u *unstructured.Unstructured) {
				setField(u, []any{map[string]any{"name": "http", "port": int64(80), "protocol": "HTTP", "hostname": s.otherHost}}, "spec", "listeners")
			}))
		all = append(all, attack.NewCreate("listen-for-own-host", "listen for a host of one's own by a Gateway", attack.Nobody, listener("listen-for-own-host", s.host)))
	}
	all = attack.WithReason("a tenant that routes another's host can read its users' passwords", nil, all...)
	return slices.Concat(all, s.buildCertificateAttacks(), s.buildIssuerAttacks())
}

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
func (s scene) makeGateway(name, host string, edits ...func(*unstructured.Unstructured)) *unstructured.Unstructured {
	class := "croft-verify"
	if len(s.attacker.Allowances.GatewayClasses) > 0 && s.attacker.Allowances.GatewayClasses[0] != "*" {
		class = s.attacker.Allowances.GatewayClasses[0]
	}
	one := map[string]any{"name": "http", "port": int64(80), "protocol": "HTTP"}
	if host != "" {
		one["hostname"] = host
	}
	u := attack.NewCustomObject(gateway+"/v1", "Gateway", s.own, "croft-"+name, map[string]any{"gatewayClassName": class, "listeners": []any{one}})
	for _, edit := range edits {
		edit(u)
	}
	return u
}
