package network_test

import (
	"encoding/json"
	"os"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/declare/manifest"
	"croft.dev/croft/internal/walls/wall/network"
)

// TestDefinitions tests the objects of the example in docs/how-to/networks.md. Each namespace of the
// tenant must have each network, once for all zones and once for each zone.
func TestDefinitions(t *testing.T) {
	data, err := os.ReadFile("../../../../examples/networks.yaml")
	if err != nil {
		t.Fatal(err)
	}
	d, problems := manifest.Parse("networks.yaml", data)
	e, more := estate.Build(d)
	if err := append(problems, more...).Err(); err != nil {
		t.Fatal(err)
	}
	tenant := *e.FindTenant("core")
	tenant.Namespaces = []string{"core", "core-test"}
	var got []string
	for _, o := range (network.Wall{}).Tenant(&e.Platform, &tenant) {
		u, ok := o.(*unstructured.Unstructured)
		if !ok || u.GroupVersionKind() != network.DefinitionKind {
			continue
		}
		got = append(got, u.GetNamespace()+"/"+u.GetName())
		config, _, _ := unstructured.NestedString(u.Object, "spec", "config")
		if !json.Valid([]byte(config)) {
			t.Errorf("%s has the configuration %s", u.GetName(), config)
		}
	}
	slices.Sort(got)
	want := []string{
		"core-test/n4", "core-test/n4-us-west-2a", "core-test/n4-us-west-2b", "core-test/n6", "core-test/n6-us-west-2a", "core-test/n6-us-west-2b",
		"core/n4", "core/n4-us-west-2a", "core/n4-us-west-2b", "core/n6", "core/n6-us-west-2a", "core/n6-us-west-2b",
	}
	if !slices.Equal(got, want) {
		t.Errorf("there are %v", got)
	}
	tenant.Networks = nil
	if n := len(network.ListTenantKinds(&tenant)); n > 0 {
		t.Errorf("a tenant without networks needs %d kinds", n)
	}
}
