package estate

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"croft.dev/croft/internal/declare/manifest"
)

// TestConsentReferences expects that the Services and Gateways of a consent open with the connection,
// for the caller only, and not without the other tenant's consent.
func TestConsentReferences(t *testing.T) {
	const both = "services: [shop/api, shop-test/web, api], gateways: [web]"
	long := strings.Repeat("a", 60)
	for _, test := range []struct {
		name, callers, calls string
		labels, wrong        string
	}{
		{"both agree", "{billing: {ports: [443], " + both + "}}", "{shop: {}}", "croft.dev/gateway.shop.web croft.dev/service.shop-test.web croft.dev/service.shop.api", ""},
		{"only the callee agrees", "{billing: {ports: [443], " + both + "}}", "{}", "",
			"croft.yaml:9: tenants.shop.network.callers.billing: note: waits for tenant billing, whose network.calls does not name shop"},
		{"the consent has ended", "{billing: {ports: [443], until: 2020-01-01, " + both + "}}", "{shop: {}}", "",
			"croft.yaml:9: tenants.shop.network.callers.billing.until: warning: this consent expired at 2020-01-02T00:00:00Z; remove the entry, or write a later time\n" +
				"croft.yaml:10: tenants.billing.network.calls.shop: warning: the consent of tenant shop expired at 2020-01-02T00:00:00Z"},
		{"another tenant's namespace", "{billing: {ports: [443], services: [api, jobs/api], gateways: [billing/web]}}", "{shop: {}}", "croft.dev/service.shop.api",
			"croft.yaml:9: tenants.shop.network.callers.billing.gateways[0]: warning: billing is not a namespace of tenant shop, so nothing opens; name one of its namespaces\n" +
				"croft.yaml:9: tenants.shop.network.callers.billing.services[1]: warning: jobs is not a namespace of tenant shop, so nothing opens; name one of its namespaces"},
		{"too long a name of a Gateway", "{billing: {ports: [443], gateways: [" + long + "]}}", "{shop: {}}", "",
			"croft.yaml:9: tenants.shop.network.callers.billing.gateways[0]: shop/" + long + " is too long for the label croft.dev/gateway.shop." + long + ", whose name may have 63 characters; choose a shorter name"},
	} {
		t.Run(test.name, func(t *testing.T) {
			d, problems := manifest.Parse("croft.yaml", fmt.Appendf(nil, "%spools: {apps: }\ntenants:\n  shop: {pool: apps, namespaces: [shop, shop-test], network: {callers: %s}}\n"+
				"  billing: {pool: apps, network: {calls: %s}}\n  jobs: {pool: apps, network: {calls: {shop: {}}}}\n", base, test.callers, test.calls))
			if err := problems.Err(); err != nil {
				t.Fatal(err)
			}
			d.Now = time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)
			e, problems := Build(d)
			if len(problems) > 0 {
				if diff := cmp.Diff(test.wrong, problems.Error()); diff != "" {
					t.Errorf("problems (-want +got):\n%s", diff)
				}
				return
			}
			if got := strings.Join(slices.Sorted(maps.Keys(e.FindTenant("billing").BuildReferenceLabels())), " "); got != test.labels {
				t.Errorf("labels %q, want %q", got, test.labels)
			}
			for _, other := range []string{"shop", "jobs"} {
				if got := e.FindTenant(other).BuildReferenceLabels(); len(got) > 0 {
					t.Errorf("%s may name objects to which it did not agree: %v", other, got)
				}
			}
			var warnings []string
			for _, w := range strings.Split(e.Warnings.Error(), "\n") {
				if !strings.Contains(w, "tenants.jobs.") {
					warnings = append(warnings, w)
				}
			}
			if diff := cmp.Diff(test.wrong, strings.Join(warnings, "\n")); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}
