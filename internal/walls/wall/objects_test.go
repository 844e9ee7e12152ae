package wall_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/document"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/declare/manifest"
	"croft.dev/croft/internal/rules/rulefile"
	"croft.dev/croft/internal/walls/wall"
	"croft.dev/croft/internal/walls/wall/ruletest"
)

// TestDeclaredObjects requires the declared objects in every namespace of a tenant, with their
// parameters replaced and croft's labels, and a tenant's own object in place of the platform's.
func TestDeclaredObjects(t *testing.T) {
	d, problems := manifest.Parse("croft.yaml", []byte(`
platform:
  clusterName: demo
  nodeClass: {kwok: {}}
  tenantDomain: example.org
  tenantDefaults:
    objects:
    - {apiVersion: v1, kind: ConfigMap, metadata: {name: team, labels: {app.kubernetes.io/name: team}}, data: {text: "$(tenant) $(namespace) $(domain) $$(tenant) $(date)"}}
    - {apiVersion: v1, kind: ConfigMap, metadata: {name: ca}, data: {ca.crt: platform}}
pools: {apps: {}}
tenants:
  shop: {pool: apps, namespaces: [shop, shop-ci]}
  bank: {pool: apps, costCode: org1, objects: [{apiVersion: v1, kind: ConfigMap, metadata: {name: ca}, data: {ca.crt: $(costCode)}}]}
`))
	e, more := estate.Build(d)
	if len(problems)+len(more) > 0 {
		t.Fatal(problems, more)
	}
	found := map[string]string{}
	for _, tenant := range e.Tenants {
		for _, o := range wall.TenantObjects(&e.Platform, tenant) {
			config, ok := o.(*corev1.ConfigMap)
			if !ok {
				continue
			}
			found[config.Namespace+"/"+config.Name] = config.Data["text"] + config.Data["ca.crt"]
			labels := config.Labels
			if labels[v1alpha1.ManagedByLabel] != v1alpha1.ManagedBy || labels[v1alpha1.TenantLabel] != tenant.Name || labels[v1alpha1.WallLabel] != "policy" {
				t.Errorf("%s lacks croft's labels: %v", config.Name, labels)
			}
		}
	}
	want := map[string]string{
		"shop/team":    "shop shop shop.example.org $(tenant) $(date)",
		"shop-ci/team": "shop shop-ci shop.example.org $(tenant) $(date)",
		"bank/team":    "bank bank bank.example.org $(tenant) $(date)",
		"shop/ca":      "platform", "shop-ci/ca": "platform", "bank/ca": "org1",
	}
	for name := range want {
		if found[name] != want[name] {
			t.Errorf("%s has %q, want %q", name, found[name], want[name])
		}
	}
	if len(found) != len(want) {
		t.Errorf("found %v", found)
	}
}

// TestObjectsFollowTenantRules declares the objects that the rules on tenants' NetworkPolicies and
// RoleBindings refuse. croft.yaml must refuse them too, since no rule applies to the operator.
func TestObjectsFollowTenantRules(t *testing.T) {
	scene := rulefile.Scene{Words: map[string]string{"own": "shop", "other": "bank", "otherTenant": "bank", "platform": "ingress"}}
	total := 0
	for _, test := range []struct{ wall, file string }{
		{"network", "network-floor"}, {"policy", "croft-role-bindings/strangers"}, {"policy", "croft-role-bindings/everybody"},
	} {
		file, ok := ruletest.ReadFiles(t, test.wall)[test.file]
		if !ok {
			t.Fatalf("there is no file %s", test.file)
		}
		refused, accepted := 0, 0
		for _, c := range file.Cases {
			if c.Rule == "bounds" || c.Old != nil || c.Attack != "" || c.Mirror != "" || c.Verb != "" {
				continue
			}
			object, _, err := file.BuildObjects(c, scene)
			if err != nil {
				t.Fatal(err)
			}
			object.SetNamespace("")
			tenant, err := rulefile.MergePatch(map[string]any{"tenant": cloneMap(t, file.Tenant)}, map[string]any{"tenant": cloneMap(t, c.Tenant)}, scene)
			if err != nil {
				t.Fatal(err)
			}
			own, _ := tenant["tenant"].(map[string]any)
			problems := declareObject(t, cloneMap(t, file.Platform), own, object.Object)
			for _, p := range problems {
				if !strings.Contains(p.Field, "objects") {
					t.Fatalf("%s: %v", c.Name, p)
				}
			}
			switch {
			case len(problems) == 0 && c.Refused:
				t.Errorf("%s: %s: croft.yaml may contain it: %v", test.file, c.Name, object.Object)
			case len(problems) == 0:
				accepted++
			default:
				refused++
			}
		}
		t.Logf("%s: %d accepted, %d refused", test.file, accepted, refused)
		total += accepted
		if refused == 0 {
			t.Errorf("%s: no case is refused", test.file)
		}
	}
	if total == 0 {
		t.Error("no case is accepted: the cases tell nothing apart")
	}
}

func cloneMap(t *testing.T, m map[string]any) map[string]any {
	t.Helper()
	if m == nil {
		return map[string]any{}
	}
	data, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	copied := map[string]any{}
	if err := json.Unmarshal(data, &copied); err != nil {
		t.Fatal(err)
	}
	return copied
}

// declareObject returns the problems of an estate in which the tenant shop declares an object.
func declareObject(t *testing.T, platform, tenant map[string]any, object any) document.Problems {
	t.Helper()
	tenant["objects"], tenant["pool"] = []any{object}, "apps"
	platform["clusterName"], platform["nodeClass"] = "demo", map[string]any{"kwok": map[string]any{}}
	data, err := json.Marshal(map[string]any{
		"platform": platform, "pools": map[string]any{"apps": map[string]any{}},
		"tenants": map[string]any{"shop": tenant, "bank": map[string]any{"pool": "apps"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	d, problems := manifest.Parse("croft.yaml", data)
	_, more := estate.Build(d)
	return slices.Concat(problems, more)
}
