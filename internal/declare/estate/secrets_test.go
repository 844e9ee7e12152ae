package estate_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/declare/manifest"
)

// TestSecrets expects the platform's copies in every tenant, and a tenant's copy in place of the platform's of
// the same name.
func TestSecrets(t *testing.T) {
	d, problems := manifest.Parse("croft.yaml", []byte(`
platform: {clusterName: demo, nodeClass: {kwok: {}}, tenantDefaults: {secrets: {registry: {from: registry-credentials}, ca: {}}}}
pools: {apps: {}}
tenants:
  shop: {pool: apps, secrets: {registry: {from: shop-credentials}, api-key: {}}}
  bank: {pool: apps}
`))
	e, more := estate.Build(d)
	if len(problems)+len(more) > 0 {
		t.Fatal(problems, more)
	}
	for tenant, want := range map[string][]estate.SecretCopy{
		"shop": {{Name: "api-key", Source: "api-key"}, {Name: "ca", Source: "ca"}, {Name: "registry", Source: "shop-credentials"}},
		"bank": {{Name: "ca", Source: "ca"}, {Name: "registry", Source: "registry-credentials"}},
	} {
		if diff := cmp.Diff(want, e.FindTenant(tenant).Secrets); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tenant, diff)
		}
	}
	want := []estate.SecretCopy{
		{Name: "api-key", Source: "api-key"}, {Name: "ca", Source: "ca"}, {Name: "registry", Source: "registry-credentials"}, {Name: "registry", Source: "shop-credentials"},
	}
	if diff := cmp.Diff(want, estate.ListSecrets(d)); diff != "" {
		t.Errorf("all copies (-want +got):\n%s", diff)
	}
}

// TestSecretsRefused expects one problem for each invalid name.
func TestSecretsRefused(t *testing.T) {
	for secrets, want := range map[string]string{
		"{registry: {}}":                        "",
		"{registry: {from: a.b}}":               "",
		"{croft-ledger: {}}":                    "do not begin with croft",
		"{Registry: {}}":                        "names of copies are at most 63 lower-case letters",
		"{a/b: {}}":                             "names of copies are at most 63 lower-case letters",
		"{registry: {from: shop/other}}":        "must be the name of a Secret",
		"{registry: {data: {a: YQ==}}}":         "data",
		"{registry: {namespace: bank}}":         "namespace",
		"[registry]":                            "secrets",
		"{" + strings.Repeat("a", 64) + ": {}}": "names of copies are at most 63 lower-case letters",
	} {
		d, problems := manifest.Parse("croft.yaml", []byte(`
platform: {clusterName: demo, nodeClass: {kwok: {}}}
pools: {apps: {}}
tenants:
  shop: {pool: apps, secrets: `+secrets+`}
`))
		_, more := estate.Build(d)
		problems = append(problems, more...)
		switch {
		case want == "" && len(problems) > 0:
			t.Errorf("%s: refused: %v", secrets, problems)
		case want != "" && (len(problems) != 1 || !strings.Contains(problems[0].Error(), want)):
			t.Errorf("%s: got %v, want %s", secrets, problems, want)
		}
	}
}
