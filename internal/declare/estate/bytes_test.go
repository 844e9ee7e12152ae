package estate_test

import (
	"os"
	"strings"
	"testing"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/declare/estate/estatetest"
	"croft.dev/croft/internal/declare/manifest"
)

// buildEstate builds the estate of a valid croft.yaml.
func buildEstate(t *testing.T, content string) *estate.Estate {
	t.Helper()
	d, problems := manifest.Parse("croft.yaml", []byte(content))
	e, more := estate.Build(d)
	if err := append(problems, more...).Err(); err != nil {
		t.Fatal(err)
	}
	return e
}

// TestTenantBytes compares the product of croft's default numbers and sizes with the bound in
// docs/explanation/walls.md.
func TestTenantBytes(t *testing.T) {
	const promised = 384 << 20
	e := buildEstate(t, "platform: {clusterName: demo, nodeClass: {kwok: {}}}\npools: {a: {}}\ntenants: {\n"+
		"shop: {pool: a},\ncharts: {pool: a, policy: {maxHelmReleaseBytes: 1048576}},\nsmall: {pool: a, quota: {pods: 7, secrets: 10, count/pods: 10, requests.cpu: 4}, policy: {maxOtherObjectBytes: 32768}}\n}\n")
	if got := estatetest.MaxTenantBytes(e.FindTenant("shop")); got > promised {
		t.Errorf("a tenant can hold %d MiB", got>>20)
	} else {
		t.Logf("a tenant can hold %d MiB", got>>20)
	}
	if got, want := estatetest.MaxTenantBytes(e.FindTenant("charts"))-estatetest.MaxTenantBytes(e.FindTenant("shop")), int64(250*(1<<20-estate.MaxObjectBytes)); got != want {
		t.Errorf("releases of Helm add %d bytes, not %d", got, want)
	}
	if got, want := estatetest.MaxTenantBytes(e.FindTenant("small")), int64(10*estate.MaxObjectBytes+10*32768); got != want {
		t.Errorf("a small tenant can hold %d bytes, not %d", got, want)
	}
}

// TestTenantBytesInDocs compares the small teams' values in docs/explanation/walls.md with the size stated
// there, and requires a number for every built-in kind that tenants may write.
func TestTenantBytesInDocs(t *testing.T) {
	doc, err := os.ReadFile("../../../docs/explanation/walls.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, found := strings.Cut(string(doc), "give 62 MiB\nfor each:\n\n```yaml\nplatform:\n")
	text, _, ends := strings.Cut(text, "```")
	if !found || !ends {
		t.Fatal("docs/explanation/walls.md has no bounds for small teams")
	}
	e := buildEstate(t, "platform:\n  clusterName: demo\n  nodeClass: {kwok: {}}\n"+text+"pools: {a: {}}\ntenants: {shop: {pool: a}}\n")
	shop := e.FindTenant("shop")
	if got := estatetest.MaxTenantBytes(shop) >> 20; got != 62 {
		t.Errorf("a tenant can hold %d MiB, not 62", got)
	}
	for name := range estate.BuiltinQuota(&v1alpha1.PlatformSpec{}) {
		_, group, _ := strings.Cut(string(name), ".")
		addon := strings.HasSuffix(group, "cert-manager.io") || strings.HasSuffix(group, "fluxcd.io") || strings.HasPrefix(group, "gateway.") || group == "cert-manager.io"
		if _, bounded := shop.Quota[name]; !bounded && !addon {
			t.Errorf("any number of %s", name)
		}
	}
}
