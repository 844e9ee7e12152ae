package estate

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/manifest"
)

// formatConnections writes each connection in one line.
func formatConnections(all []Connection) string {
	var lines []string
	for _, c := range all {
		line := fmt.Sprintf("%s%v -> %s%v %v", c.Caller, c.CallerPods, c.Callee, c.CalleePods, c.Ports)
		if !c.Until.IsZero() {
			line += " until " + c.Until.UTC().Format(time.RFC3339)
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// TestConnections expects that a connection opens only if both tenants name each other, and only
// as far as both agree.
func TestConnections(t *testing.T) {
	now := time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)
	for _, test := range []struct {
		name, shop, billing string
		want, warned        string
	}{
		{"both agree", "callers: {billing: {ports: [443], pods: {app: api}, until: 2027-01-31}}", "calls: {shop: {}}",
			"billingmap[] -> shopmap[app:api] [443] until 2027-02-01T00:00:00Z", ""},
		{"only the callee", "callers: {billing: {ports: [443]}}", "egress: Open", "",
			"croft.yaml:9: tenants.shop.network.callers.billing: note: waits for tenant billing, whose network.calls does not name shop"},
		{"only the caller", "egress: Open", "calls: {shop: {ports: [443]}}", "",
			"croft.yaml:10: tenants.billing.network.calls.shop: note: waits for tenant shop, whose network.callers does not name billing"},
		{"both call, neither is called", "calls: {billing: {}}", "calls: {shop: {}}", "",
			"croft.yaml:9: tenants.shop.network.calls.billing: note: waits for tenant billing, whose network.callers does not name shop\n" +
				"croft.yaml:10: tenants.billing.network.calls.shop: note: waits for tenant shop, whose network.callers does not name billing"},
		{"a third tenant agrees", "callers: {jobs: {ports: [443]}}", "calls: {shop: {}}", "",
			"croft.yaml:9: tenants.shop.network.callers.jobs: note: waits for tenant jobs, whose network.calls does not name shop\n" +
				"croft.yaml:10: tenants.billing.network.calls.shop: note: waits for tenant shop, whose network.callers does not name billing"},
		{"an unknown tenant", "callers: {billng: {ports: [443]}}", "egress: Open", "",
			"croft.yaml:9: tenants.shop.network.callers.billng: warning: there is no tenant billng; did you mean billing?"},
		{"both directions", "callers: {billing: {ports: [1]}}, calls: {billing: {}}", "callers: {shop: {ports: [2/UDP]}}, calls: {shop: {}}",
			"shopmap[] -> billingmap[] [2/UDP]\nbillingmap[] -> shopmap[] [1]", ""},
		{"ports of both", "callers: {billing: {ports: [443, 8000-8010, 53/UDP]}}", "calls: {shop: {ports: [442-443, 8005-9000, 53], pods: {app: web}}}",
			"billingmap[app:web] -> shopmap[] [443 8005-8010]", ""},
		{"no common port", "callers: {billing: {ports: [443]}}", "calls: {shop: {ports: [80]}}", "",
			"croft.yaml:9: tenants.shop.network.callers.billing: warning: no port is named by both tenants, so nothing opens; tenant billing names others in network.calls\n" +
				"croft.yaml:10: tenants.billing.network.calls.shop: warning: no port is named by both tenants, so nothing opens; tenant shop names others in network.callers"},
		{"the first end", "callers: {billing: {ports: [443], until: 2027-01-31T18:00:00+01:00}}", "calls: {shop: {until: 2026-12-31}}",
			"billingmap[] -> shopmap[] [443] until 2027-01-01T00:00:00Z", ""},
		{"the last second of a day", "callers: {billing: {ports: [443], until: 2026-12-01}}", "calls: {shop: {}}",
			"billingmap[] -> shopmap[] [443] until 2026-12-02T00:00:00Z", ""},
		{"the caller's end has passed", "callers: {billing: {ports: [443]}}", "calls: {shop: {until: 2026-11-30}}", "",
			"croft.yaml:9: tenants.shop.network.callers.billing: warning: the consent of tenant billing expired at 2026-12-01T00:00:00Z\n" +
				"croft.yaml:10: tenants.billing.network.calls.shop.until: warning: this consent expired at 2026-12-01T00:00:00Z; remove the entry, or write a later time"},
		{"the end is now", "callers: {billing: {ports: [443], until: 2026-12-01T12:00:00Z}}", "calls: {shop: {}}", "",
			"croft.yaml:9: tenants.shop.network.callers.billing.until: warning: this consent expired at 2026-12-01T12:00:00Z; remove the entry, or write a later time\n" +
				"croft.yaml:10: tenants.billing.network.calls.shop: warning: the consent of tenant shop expired at 2026-12-01T12:00:00Z"},
	} {
		t.Run(test.name, func(t *testing.T) {
			d, problems := manifest.Parse("croft.yaml", fmt.Appendf(nil, "%spools: {apps: }\ntenants:\n  shop: {pool: apps, network: {%s}}\n  billing: {pool: apps, network: {%s}}\n  jobs: {pool: apps}\n",
				base, test.shop, test.billing))
			if err := problems.Err(); err != nil {
				t.Fatal(err)
			}
			d.Now = now
			e, problems := Build(d)
			if err := problems.Err(); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, formatConnections(e.Platform.Connections)); diff != "" {
				t.Errorf("connections (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.warned, e.Warnings.Error()); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
			for _, tenant := range e.Tenants {
				consents := 0
				for i := range d.Tenants {
					if d.Tenants[i].Name == tenant.Name {
						consents = len(listConsents(&d.Tenants[i]))
					}
				}
				if len(tenant.Connections)+len(tenant.Pending) != consents {
					t.Errorf("%s: %d connections and %q of %d consents", tenant.Name, len(tenant.Connections), tenant.Pending, consents)
				}
			}
			for _, c := range e.Platform.Connections {
				if e.FindTenant(c.Caller).FindConnection(c.Caller, c.Callee) == nil || e.FindTenant(c.Callee).FindConnection(c.Caller, c.Callee) == nil {
					t.Errorf("only one of the two tenants has the connection %v", c)
				}
			}
		})
	}
}

// agreeing is two tenants that agree on a port until a day.
const agreeing = base + `pools: {apps: }
tenants:
  shop: {pool: apps, network: {callers: {billing: {ports: [443], until: 2027-01-31}}}}
  billing: {pool: apps, network: {calls: {shop: {}}}}
`

// TestConnectionsEnd expects a connection until its end, and none with a tenant that is being
// deleted, or that was refused as a duplicate.
func TestConnectionsEnd(t *testing.T) {
	d, _ := parseValid(t, agreeing)
	count := func() (int, *Estate) {
		e, problems := Build(d)
		if err := problems.Err(); err != nil {
			t.Fatal(err)
		}
		return len(e.Platform.Connections), e
	}
	end := time.Date(2027, 2, 1, 0, 0, 0, 0, time.UTC)
	for _, test := range []struct {
		now  time.Time
		want int
	}{{time.Time{}, 1}, {end.Add(-time.Second), 1}, {end, 0}, {end.AddDate(1, 0, 0), 0}} {
		d.Now = test.now
		got, e := count()
		if got != test.want {
			t.Errorf("%s: %d connections, want %d", test.now, got, test.want)
		}
		if next := e.FindNextChange(); next.Equal(end) != (test.want == 1) {
			t.Errorf("%s: the next end is %s", test.now, next)
		}
	}
	d.Now = time.Time{}
	for i := range d.Tenants {
		d.Tenants[i].DeletionTimestamp = &metav1.Time{Time: end}
		if got, e := count(); got != 0 || strings.Contains(fmt.Sprint(e.FindTenant(d.Tenants[i].Name).Pending), "deleted") {
			t.Errorf("%s is being deleted: %d connections", d.Tenants[i].Name, got)
		}
		d.Tenants[i].DeletionTimestamp = nil
	}
	// The mistake of one tenant does not close the connection for the other.
	d.Tenants[0].Spec.Pool = "missing"
	if e, _ := Build(d); len(e.Tenants) != 1 || len(e.Tenants[0].Connections) != 1 || len(e.Platform.Connections) != 1 {
		t.Errorf("with one refused tenant: %+v", e.Tenants)
	}
}

// TestConsentIsForOneTenant expects that a consent does not pass to a later tenant of the same name,
// until it is withdrawn and given again.
func TestConsentIsForOneTenant(t *testing.T) {
	d, _ := parseValid(t, agreeing)
	shop, billing := &d.Tenants[0], &d.Tenants[1]
	shop.UID, billing.UID = "shop-1", "billing-1"
	check := func(step string, want int, pending string) {
		t.Helper()
		e, problems := Build(d)
		if err := problems.Err(); err != nil {
			t.Fatal(err)
		}
		if n := len(e.Platform.Connections); n != want {
			t.Errorf("%s: %d connections, want %d", step, n, want)
		}
		for i := range d.Tenants {
			resolved := e.FindTenant(d.Tenants[i].Name)
			if pending != "" && (len(resolved.Pending) != 1 || !strings.Contains(resolved.Pending[0], pending)) {
				t.Errorf("%s: %s: pending %q, want %q", step, resolved.Name, resolved.Pending, pending)
			}
			d.Tenants[i].Status.Consents = resolved.Consents // as the operator does
		}
	}
	check("both agree", 1, "")
	check("again", 1, "")
	*billing = v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "billing", UID: "billing-2"}, Spec: billing.Spec}
	check("billing was declared again", 0, "earlier tenant billing")
	check("and again", 0, "earlier tenant billing")
	callers := shop.Spec.Network.Callers
	shop.Spec.Network.Callers = nil
	check("shop withdraws", 0, "")
	shop.Spec.Network.Callers = callers
	check("shop agrees again", 1, "")
	d.Tenants = d.Tenants[:1]
	check("billing is deleted", 0, "there is no tenant billing")
	if got := d.Tenants[0].Status.Consents["billing"]; got != "billing-2" {
		t.Errorf("the consent is bound to %q", got)
	}
}

// TestInvalidConsents expects one clear line for each mistake.
func TestInvalidConsents(t *testing.T) {
	for _, test := range []badInput{
		{"the tenant itself", "callers: {shop: {ports: [443]}}", []string{
			"tenants.shop.network.callers.shop: is the tenant itself, whose pods are always connected; name another tenant, or leave it out"}},
		{"no ports", "callers: {billing: {}}", []string{
			"tenants.shop.network.callers.billing.ports: is required, but missing"}},
		{"empty lists", "callers: {billing: {ports: [], pods: {}}}, calls: {billing: {ports: []}}", []string{
			"tenants.shop.network.callers.billing.pods: must not be empty; leave it out, or set a value",
			"tenants.shop.network.callers.billing.ports: must not be empty; set a value",
			"tenants.shop.network.calls.billing.ports: must not be empty; leave it out, or set a value"}},
		{"ports", "callers: {billing: {ports: [0, 65536, 90-80, 80/tcp, http, -1, 1-2-3, \"\"]}}", []string{
			`tenants.shop.network.callers.billing.ports[0]: "0" is not a port; ` + portForms,
			`tenants.shop.network.callers.billing.ports[1]: "65536" is not a port; ` + portForms,
			"tenants.shop.network.callers.billing.ports[2]: the range 90-80 ends before it begins; write 80-90",
			"tenants.shop.network.callers.billing.ports[3]: 80/tcp has no known protocol; write TCP, UDP or SCTP after the slash",
			`tenants.shop.network.callers.billing.ports[4]: "http" is not a port; ` + portForms,
			`tenants.shop.network.callers.billing.ports[5]: "-1" is not a port; ` + portForms,
			`tenants.shop.network.callers.billing.ports[6]: "1-2-3" is not a port; ` + portForms,
			`tenants.shop.network.callers.billing.ports[7]: "" is not a port; ` + portForms}},
		{"values of other types", "callers: {billing: {ports: [true], until: 3}}", []string{
			"tenants.shop.network.callers.billing.ports[0]: must be a number or text, not true",
			"tenants.shop.network.callers.billing.until: the number 3 is not allowed; write a day, such as 2027-01-31, or a time, such as 2027-01-31T18:00:00Z"}},
		{"a port without a list", "callers: {billing: {ports: 443}}", []string{
			"tenants.shop.network.callers.billing.ports: must be a list, such as [443, 8000-8010], not the number 443"}},
		{"ends", "callers: {billing: {ports: [1], until: 2027-02-30}}, calls: {billing: {until: tomorrow}}", []string{
			`tenants.shop.network.callers.billing.until: "2027-02-30" must be a day, such as 2027-01-31, or a time, such as 2027-01-31T18:00:00Z`,
			`tenants.shop.network.calls.billing.until: "tomorrow" must be a day, such as 2027-01-31, or a time, such as 2027-01-31T18:00:00Z`}},
		{"labels", "callers: {billing: {ports: [1], pods: {\"a b\": c}}}, calls: {billing: {pods: {a: \"b c\"}}}", []string{
			"tenants.shop.network.callers.billing.pods: must be labels of pods, such as {app: api}",
			`tenants.shop.network.calls.billing.pods.a: "b c" must be the value of a label, such as api`}},
		{"an unknown field", "callers: {billing: {port: [1]}}", []string{
			"tenants.shop.network.callers.billing.port: there is no such field; did you mean ports?",
			"tenants.shop.network.callers.billing.ports: is required, but missing"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, _, problems := parseAndBuild(base + "pools: {apps: }\ntenants:\n  shop: {pool: apps, network: {" + test.content + "}}\n  billing: {pool: apps}\n")
			var want []string
			for _, line := range test.want {
				want = append(want, "croft.yaml:9: "+line)
			}
			expectProblems(t, problems, want...)
		})
	}
}

// TestPorts expects that a port is read as it is written.
func TestPorts(t *testing.T) {
	for _, port := range []intstr.IntOrString{intstr.FromInt32(443), intstr.FromString("8000-8010"), intstr.FromString("53/UDP"), intstr.FromString("1-65535/SCTP")} {
		r, err := parsePort(port)
		if err != nil || r.ToPort() != port {
			t.Errorf("%s is read as %s: %v", port.String(), r, err)
		}
	}
	if r, err := parsePort(intstr.FromString("443-443/TCP")); err != nil || r.ToPort() != intstr.FromInt32(443) {
		t.Errorf("443-443/TCP is read as %s: %v", r, err)
	}
}
