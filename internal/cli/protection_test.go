package cli

import (
	"strings"
	"testing"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/manifest"
)

// TestProtection expects croft apply to refuse, in one line and before the first write, a file that
// deletes a protected tenant or removes one of its namespaces, and croft diff to show the refusal.
func TestProtection(t *testing.T) {
	parse := func(tenants string) *manifest.Declaration {
		d, problems := manifest.Parse("croft.yaml", []byte("platform: {clusterName: demo, nodeClass: {kwok: {}}}\npools: {apps: {}}\ntenants:\n  bank: {pool: apps}\n"+tenants))
		if err := problems.Err(); err != nil {
			t.Fatal(err)
		}
		return d
	}
	// Objects of a cluster have no position in a file.
	live := &manifest.Declaration{Tenants: parse("  shop: {pool: apps, namespaces: [shop, shop-ci], protect: true}\n").Tenants}
	const (
		asLive   = "  shop: {pool: apps, namespaces: [shop, shop-ci], protect: true}\n"
		noCI     = "  shop: {pool: apps, protect: true}\n"
		unlocked = "  shop: {pool: apps, namespaces: [shop, shop-ci], protect: false}\n"
	)
	for name, c := range map[string]struct {
		file  string
		prune bool
		// refusal is a part of the only refusal, and shown a part of croft diff's consequences.
		refusal, shown string
	}{
		"the tenant is missing, without --prune": {"", false, "", ""},
		"the tenant is missing, with --prune": {"", true,
			"in the cluster, not in this file: Tenant/shop: spec.protect: the tenant is protected from deletion: declare it with protect: false, apply the file, and remove the tenant from it afterwards",
			"croft apply refuses the change of tenant shop: the tenant is protected from deletion"},
		"no change":                   {asLive, true, "", ""},
		"a namespace is missing":      {noCI, false, "croft.yaml:5: tenants.shop.namespaces: the tenant is protected in the cluster and keeps its namespaces (shop-ci): apply", "keeps its namespaces (shop-ci)"},
		"a namespace and the field":   {"  shop: {pool: apps}\n", false, "croft.yaml:5: tenants.shop.namespaces: ", "no longer protected"},
		"the protection ends":         {unlocked, true, "", "tenant shop is no longer protected from deletion"},
		"the protection ends by lack": {strings.Replace(unlocked, ", protect: false", "", 1), false, "", "tenant shop is no longer protected from deletion"},
	} {
		p := &proposal{live: live, file: parse(c.file)}
		refusals := p.findProtected(c.prune)
		if got := refusals.Error(); (c.refusal == "") != (got == "") || !strings.Contains(got, c.refusal) || strings.Contains(got, "\n") {
			t.Errorf("%s: %q, want %q", name, got, c.refusal)
		}
		var shown []string
		for _, consequence := range p.describeProtection(c.prune) {
			shown = append(shown, consequence.Message)
		}
		if got := strings.Join(shown, "; "); (c.shown == "") != (got == "") || !strings.Contains(got, c.shown) {
			t.Errorf("%s: diff shows %q, want %q", name, got, c.shown)
		}
	}
	if err := errProtected(live.Tenants...); err == nil || !strings.Contains(err.Error(), "tenant shop: set protect: false") {
		t.Errorf("a protected tenant: %v", err)
	}
	if err := errProtected(parse("").Tenants...); err != nil {
		t.Errorf("a tenant without protection: %v", err)
	}
	if err := errProtected(v1alpha1.Tenant{}); err != nil {
		t.Errorf("an empty tenant: %v", err)
	}
}
