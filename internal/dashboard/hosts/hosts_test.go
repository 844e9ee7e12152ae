package hosts_test

import (
	"fmt"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"croft.dev/croft/internal/dashboard/hosts"
)

// TestList lists the hosts of each kind, those outside of the domains first.
func TestList(t *testing.T) {
	const objects = `
- {apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: web}, spec: {rules: [{host: a.shop.example.org}, {}], tls: [{hosts: [a.shop.example.org, b.bank.example.org]}]}}
- {apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: all}, spec: {defaultBackend: {service: {name: web}}}}
- {apiVersion: gateway.networking.k8s.io/v1, kind: Gateway, metadata: {name: edge}, spec: {listeners: [{hostname: "*.shop.example.org"}, {name: http}]}}
- {apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {name: web}, spec: {hostnames: [shop.example.com]}}
- {apiVersion: gateway.networking.k8s.io/v1, kind: GRPCRoute, metadata: {name: inherits}, spec: {}}
- {apiVersion: gateway.networking.k8s.io/v1, kind: TLSRoute, metadata: {name: tls}, spec: {hostnames: [shop.example.org]}}
- {apiVersion: cert-manager.io/v1, kind: Certificate, metadata: {name: web}, spec: {dnsNames: [a.shop.example.org], commonName: b.shop.example.org}}
- {apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: wrong}, spec: {rules: none, tls: [1]}}
- {apiVersion: v1, kind: Service, metadata: {name: web}, spec: {}}
`
	var contents []map[string]any
	if err := yaml.Unmarshal([]byte(objects), &contents); err != nil {
		t.Fatal(err)
	}
	var all []unstructured.Unstructured
	for _, content := range contents {
		all = append(all, unstructured.Unstructured{Object: content})
	}
	var got []string
	for _, u := range hosts.List(all, []string{"*.shop.example.org", "shop.example.com"}) {
		got = append(got, fmt.Sprintf("%q %s/%s %t", u.Host, u.Kind, u.Name, u.Allowed))
	}
	want := []string{
		`"" Gateway/edge false`, `"" Ingress/all false`, `"" Ingress/web false`, `"b.bank.example.org" Ingress/web false`, `"shop.example.org" TLSRoute/tls false`,
		`"*.shop.example.org" Gateway/edge true`, `"a.shop.example.org" Certificate/web true`, `"a.shop.example.org" Ingress/web true`,
		`"b.shop.example.org" Certificate/web true`, `"shop.example.com" HTTPRoute/web true`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%q\nwant\n%q", got, want)
	}
}

// TestIsGranted agrees with the expression of the admission policies.
func TestIsGranted(t *testing.T) {
	for host, want := range map[string]bool{
		"a.example.org": true, "a.b.example.org": true, "*.example.org": true, "example.org": false, ".example.org": false, "aexample.org": false, "": false,
		"example.com": true, "a.example.com": false, "*": false,
	} {
		if got := hosts.IsGranted(host, []string{"*.example.org", "example.com"}); got != want {
			t.Errorf("%q: %t", host, got)
		}
	}
}
