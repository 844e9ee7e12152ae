package network_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/walls/wall/network"
)

var update = flag.Bool("update", false, "rewrite testdata from the dialects' output")

// dialects has every way to write the wall.
var dialects = map[string]v1alpha1.PlatformNetwork{
	"kubernetes":           {Dialect: v1alpha1.DialectKubernetes},
	"calico":               {Dialect: v1alpha1.DialectCalico},
	"calico-storage":       {Dialect: v1alpha1.DialectCalico, Calico: &v1alpha1.CalicoNetwork{APIGroup: v1alpha1.CalicoStorageGroup}},
	"clusternetworkpolicy": {Dialect: v1alpha1.DialectClusterNetworkPolicy},
	"aws":                  {Dialect: v1alpha1.DialectAWS},
}

// TestDialects compares the objects of each dialect with the reviewed golden files, for a
// tenant with Open and one with Restricted egress. Run `go test ./internal/walls/wall/network
// -update` and review the diff.
func TestDialects(t *testing.T) {
	for name, dialect := range dialects {
		t.Run(name, func(t *testing.T) {
			dialect.PlatformNamespaces = []string{"ingress", "monitoring"}
			p := &estate.Platform{PlatformSpec: v1alpha1.PlatformSpec{Network: dialect, ClusterDNS: []string{"10.100.0.10", "fd00::a"}}}
			var got bytes.Buffer
			for _, tenant := range []*estate.Tenant{
				{Name: "shop", Namespaces: []string{"shop", "shop-ci"}, Egress: v1alpha1.EgressOpen},
				{Name: "bank", Namespaces: []string{"bank"}, Egress: v1alpha1.EgressRestricted, AllowCIDRs: []string{"10.20.0.0/16", "fd12::/64"}},
				{Name: "web", Namespaces: []string{"web"}, Egress: v1alpha1.EgressOpen, Connections: connections},
				{Name: "jobs", Namespaces: []string{"jobs"}, Egress: v1alpha1.EgressRestricted, Connections: connections},
			} {
				for _, o := range (network.Wall{}).Tenant(p, tenant) {
					expectOneFamily(t, o)
					text, err := yaml.Marshal(o)
					if err != nil {
						t.Fatal(err)
					}
					got.WriteString("---\n")
					got.Write(text)
				}
			}
			golden := filepath.Join("testdata", name+".golden.yaml")
			if *update {
				if err := os.WriteFile(golden, got.Bytes(), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if got.String() != string(want) {
				t.Errorf("the dialect's output differs from %s; if it is meant, run with -update and look at the diff", golden)
			}
		})
	}
}

// expectOneFamily fails if a Calico rule has both IPv4 and IPv6 addresses: Calico refuses such a
// rule, but the schema of its objects allows it.
func expectOneFamily(t *testing.T, o client.Object) {
	t.Helper()
	policy, ok := o.(*unstructured.Unstructured)
	if !ok {
		return
	}
	for _, direction := range []string{"ingress", "egress"} {
		rules, _, _ := unstructured.NestedSlice(policy.Object, "spec", direction)
		for i, rule := range rules {
			families := map[bool]bool{}
			for _, side := range []string{"source", "destination"} {
				for _, field := range []string{"nets", "notNets"} {
					nets, _, _ := unstructured.NestedStringSlice(rule.(map[string]any), side, field)
					for _, n := range nets {
						families[strings.Contains(n, ":")] = true
					}
				}
			}
			if len(families) > 1 {
				t.Errorf("%s %s: rule %d of %s has addresses of both families", o.GetNamespace(), o.GetName(), i+1, direction)
			}
		}
	}
}
