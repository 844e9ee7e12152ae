package network_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/walls/wall/network"
)

// TestGrants expects ReferenceGrants for exactly the Services of a connection, in the namespaces of
// the callee alone, and for routes in the namespaces of the caller alone.
func TestGrants(t *testing.T) {
	connection := estate.Connection{
		Caller: "billing", Callee: "shop", CallerNamespaces: []string{"billing", "billing-test"},
		Ports:    []estate.PortRange{{Protocol: corev1.ProtocolTCP, First: 443, Last: 443}},
		Services: []string{"shop-test/web", "shop/api", "shop/pay"}, Gateways: []string{"shop/web"},
	}
	without := connection
	without.Services = nil
	for _, test := range []struct {
		tenant      string
		namespaces  []string
		connections []estate.Connection
		want        []string
	}{
		{"shop", []string{"shop", "shop-test", "shop-dev"}, []estate.Connection{connection}, []string{
			"shop/croft-caller-billing: billing to api,pay", "shop/croft-caller-billing-test: billing-test to api,pay",
			"shop-test/croft-caller-billing: billing to web", "shop-test/croft-caller-billing-test: billing-test to web",
		}},
		{"billing", connection.CallerNamespaces, []estate.Connection{connection}, nil},
		{"shop", []string{"shop"}, []estate.Connection{without}, nil},
		{"shop", []string{"shop"}, nil, nil},
	} {
		for name, dialect := range dialects {
			p := &estate.Platform{PlatformSpec: v1alpha1.PlatformSpec{Network: dialect}}
			tenant := &estate.Tenant{Name: test.tenant, Namespaces: test.namespaces, Connections: test.connections}
			var got []string
			for _, o := range (network.Wall{}).Tenant(p, tenant) {
				u, ok := o.(*unstructured.Unstructured)
				if !ok || u.GroupVersionKind() != network.GrantKind {
					continue
				}
				if u.GetLabels()[v1alpha1.ConsentLabel] != "billing" {
					t.Errorf("%s: the labels are %v", u.GetName(), u.GetLabels())
				}
				got = append(got, fmt.Sprintf("%s/%s: %s to %s", u.GetNamespace(), u.GetName(), listField(t, u, "from", "namespace"), listField(t, u, "to", "name")))
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("%s, %s: %q, want %q", name, test.tenant, got, test.want)
			}
			if needed := slices.Contains(network.ListTenantKinds(tenant), network.GrantKind); needed != (len(test.want) > 0) {
				t.Errorf("%s, %s: the kind is needed: %t", name, test.tenant, needed)
			}
		}
	}
}

// listField returns the distinct values of a field of the entries in a list of the spec.
func listField(t *testing.T, u *unstructured.Unstructured, list, field string) string {
	t.Helper()
	entries, _, err := unstructured.NestedSlice(u.Object, "spec", list)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, entry := range entries {
		value, _, _ := unstructured.NestedString(entry.(map[string]any), field)
		all = append(all, value)
	}
	return strings.Join(slices.Compact(all), ",")
}
