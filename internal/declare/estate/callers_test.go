package estate

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/document"
	"croft.dev/croft/internal/declare/manifest"
)

// newCaller returns a TenantCaller of shop for billing on port 443, whose two tenants are recorded.
func newCaller(name string, edits ...func(*v1alpha1.TenantCaller)) v1alpha1.TenantCaller {
	o := v1alpha1.TenantCaller{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(name), Generation: 1},
		Spec:       v1alpha1.TenantCallerSpec{Tenant: "billing", Ports: v1alpha1.ConsentPorts{intstr.FromInt32(443)}},
		Status:     v1alpha1.TenantCallerStatus{Giver: "shop-1", Receiver: "billing-1"},
	}
	for _, edit := range edits {
		edit(&o)
	}
	return o
}

// buildWithCallers builds the estate of shop, billing and jobs, as the operator reads them.
func buildWithCallers(t *testing.T, platform, shop, billing string, callers ...v1alpha1.TenantCaller) (*manifest.Declaration, *Estate) {
	t.Helper()
	d, problems := manifest.Parse("croft.yaml", fmt.Appendf(nil, "%s  tenantDefaults: {%s}\npools: {apps: }\ntenants:\n"+
		"  shop: {pool: apps, namespaces: [shop, shop-2], network: {%s}}\n  billing: {pool: apps, network: {%s}}\n  jobs: {pool: apps}\n",
		strings.TrimSuffix(base, "\n"), platform, shop, billing))
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	for i := range d.Tenants {
		d.Tenants[i].UID = types.UID(d.Tenants[i].Name + "-1")
	}
	d.Callers, d.Now = callers, time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)
	e, problems := Build(d)
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	return d, e
}

// formatAccepted writes each connection with the namespace that it is limited to.
func formatAccepted(all []Connection) string {
	var lines []string
	for i := range all {
		line := formatConnections(all[i : i+1])
		if all[i].CalleeNamespace != "" {
			line += " in " + all[i].CalleeNamespace + " by " + all[i].TenantCaller
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// TestTenantCallers expects that a TenantCaller opens only the pods of its own namespace, only within
// callersFrom, and only as far as the calls of the other tenant agree.
func TestTenantCallers(t *testing.T) {
	const from, calls = "callersFrom: [billing]", "calls: {shop: {}}"
	const waits = "waits for tenant billing, whose network.calls does not name shop"
	const elsewhere = "spec.tenant: teams of tenant shop may not accept connections from tenant %s: a platform admin allows it by network.callersFrom"
	type edit = func(*v1alpha1.TenantCaller)
	for _, test := range []struct {
		name, platform, shop, billing string
		edit                          edit
		want, refused, message        string
	}{
		{"both agree", "", from, calls, nil, "billingmap[] -> shopmap[] [443] in shop by api", "", ""},
		{"within the default", from, "", calls, nil, "billingmap[] -> shopmap[] [443] in shop by api", "", ""},
		{"from any tenant", "", `callersFrom: ["*"]`, calls, nil, "billingmap[] -> shopmap[] [443] in shop by api", "", ""},
		{"in another namespace", "", from, calls, func(o *v1alpha1.TenantCaller) { o.Namespace = "shop-2" },
			"billingmap[] -> shopmap[] [443] in shop-2 by api", "", ""},
		{"in a namespace of another tenant", "", from, calls, func(o *v1alpha1.TenantCaller) { o.Namespace = "jobs" }, "", "none", ""},
		{"in a namespace of no tenant", "", from, calls, func(o *v1alpha1.TenantCaller) { o.Namespace = "default" }, "", "none", ""},
		{"in the caller's namespace", "", from, calls, func(o *v1alpha1.TenantCaller) { o.Namespace = "billing" }, "", "none", ""},
		{"without callersFrom", "", "", calls, nil, "", "NotAllowed", fmt.Sprintf(elsewhere, "billing")},
		{"with an empty list", from, "callersFrom: []", calls, nil, "", "NotAllowed", fmt.Sprintf(elsewhere, "billing")},
		{"outside of callersFrom", "", "callersFrom: [jobs]", calls, nil, "", "NotAllowed", fmt.Sprintf(elsewhere, "billing")},
		{"the list of the tenant replaces the default", from, "callersFrom: [jobs]", calls, nil, "", "NotAllowed", fmt.Sprintf(elsewhere, "billing")},
		{"the caller's callersFrom", "", "", calls + ", callersFrom: [shop]", nil, "", "NotAllowed", fmt.Sprintf(elsewhere, "billing")},
		{"only the callee", "", from, "", nil, "", "", waits},
		{"the callee's callers do not count", "", from + ", callers: {billing: {ports: [80]}}", "", nil, "", "", waits},
		{"the caller is called, and does not call", "", from, "callers: {shop: {ports: [443]}}", nil, "", "", waits},
		{"for a third tenant", "", `callersFrom: ["*"]`, calls, func(o *v1alpha1.TenantCaller) { o.Spec.Tenant, o.Status.Receiver = "jobs", "" }, "", "",
			"waits for tenant jobs, whose network.calls does not name shop"},
		{"for a tenant that does not exist", "", `callersFrom: ["*"]`, calls, func(o *v1alpha1.TenantCaller) { o.Spec.Tenant = "billng" }, "", "",
			"waits for tenant billng, whose network.calls does not name shop"},
		{"for the tenant itself", "", `callersFrom: ["*"]`, calls, func(o *v1alpha1.TenantCaller) { o.Spec.Tenant = "shop" }, "", "NotAllowed",
			"spec.tenant: is the tenant itself, whose pods are always connected: delete the TenantCaller"},
		{"fewer ports than the caller", "", from, "calls: {shop: {ports: [400-500], pods: {app: web}}}", nil, "billingmap[app:web] -> shopmap[] [443] in shop by api", "", ""},
		{"more ports than the caller", "", from, "calls: {shop: {ports: [443]}}", func(o *v1alpha1.TenantCaller) {
			o.Spec.Ports, o.Spec.Pods = append(o.Spec.Ports, intstr.FromString("1-65535/UDP")), map[string]v1alpha1.LabelValue{"app": "api"}
		}, "billingmap[] -> shopmap[app:api] [443] in shop by api", "", ""},
		{"no common port", "", from, "calls: {shop: {ports: [80]}}", nil, "", "",
			"no port is named by both tenants, so nothing opens: tenant billing names others in network.calls"},
		{"a port that is none", "", from, calls, func(o *v1alpha1.TenantCaller) { o.Spec.Ports = append(o.Spec.Ports, intstr.FromString("http")) }, "", "Invalid",
			`spec.ports[1]: "http" is not a port; ` + portForms},
		{"the first end", "", from, "calls: {shop: {until: 2027-01-31}}", func(o *v1alpha1.TenantCaller) { o.Spec.Until = "2026-12-31" },
			"billingmap[] -> shopmap[] [443] until 2027-01-01T00:00:00Z in shop by api", "", ""},
		{"the end has passed", "", from, calls, func(o *v1alpha1.TenantCaller) { o.Spec.Until = "2026-12-01T12:00:00Z" }, "", "",
			"expired at 2026-12-01T12:00:00Z: write a later spec.until, or delete the TenantCaller"},
		{"the caller's end has passed", "", from, "calls: {shop: {until: 2026-11-30}}", nil, "", "", "the consent of tenant billing expired at 2026-12-01T00:00:00Z"},
		{"being deleted", "", from, calls, func(o *v1alpha1.TenantCaller) { o.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }, "", "none", ""},
		{"not recorded yet", "", from, calls, func(o *v1alpha1.TenantCaller) { o.Status = v1alpha1.TenantCallerStatus{} }, "", "",
			"waits until the operator has recorded the two tenants in the status"},
		{"of an earlier tenant of the namespace", "", from, calls, func(o *v1alpha1.TenantCaller) { o.Status.Giver = "shop-0" }, "", "Refused",
			"was created for an earlier tenant of this namespace: delete it, and create it again to agree for the present one"},
		{"for an earlier tenant", "", from, calls, func(o *v1alpha1.TenantCaller) { o.Status.Receiver = "billing-0" }, "", "Refused",
			"was created for an earlier tenant billing, which was deleted: delete it, and create it again to agree to the present one"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var edits []edit
			if test.edit != nil {
				edits = append(edits, test.edit)
			}
			_, e := buildWithCallers(t, test.platform, test.shop, test.billing, newCaller("api", edits...))
			if diff := cmp.Diff(test.want, formatAccepted(e.Platform.Connections)); diff != "" {
				t.Errorf("connections (-want +got):\n%s", diff)
			}
			for _, name := range []string{"shop", "billing"} {
				if got := formatAccepted(e.FindTenant(name).Connections); got != test.want {
					t.Errorf("%s has the connections %q", name, got)
				}
			}
			decisions := e.FindTenant("shop").Callers
			if test.refused == "none" {
				if len(decisions) != 0 {
					t.Errorf("decided %+v", decisions)
				}
				return
			}
			if len(decisions) != 1 || decisions[0].Refused != test.refused || decisions[0].Message != test.message {
				t.Errorf("decided %+v, want %q %q", decisions, test.refused, test.message)
			}
		})
	}
}

// TestTenantCallersAndCallers expects that TenantCallers add to the callers of croft.yaml, and that a
// call is not pending if one of them opens it.
func TestTenantCallersAndCallers(t *testing.T) {
	const calls = "calls: {shop: {}}"
	_, e := buildWithCallers(t, "", "callersFrom: [billing], callers: {billing: {ports: [80]}}", calls,
		newCaller("b"), newCaller("a", func(o *v1alpha1.TenantCaller) { o.Spec.Ports[0] = intstr.FromInt32(5432) }))
	const want = "billingmap[] -> shopmap[] [80]\nbillingmap[] -> shopmap[] [5432] in shop by a\nbillingmap[] -> shopmap[] [443] in shop by b"
	for _, name := range []string{"shop", "billing"} {
		if diff := cmp.Diff(want, formatAccepted(e.FindTenant(name).Connections)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if c := e.FindTenant("shop").FindConnection("billing", "shop"); c == nil || c.Ports[0].First != 80 {
		t.Errorf("the connection to all namespaces is %+v", c)
	}
	if c := e.FindTenant("billing").FindAccepted("billing", "shop"); c == nil || c.TenantCaller != "a" {
		t.Errorf("the first accepted connection is %+v", c)
	}

	_, e = buildWithCallers(t, "", "callersFrom: [billing]", calls)
	const waits = "network.calls.shop: waits for tenant shop, whose network.callers does not name billing, and whose team may accept it by a TenantCaller"
	if got := strings.Join(e.FindTenant("billing").Pending, "; "); got != waits {
		t.Errorf("pending %q", got)
	}
	_, e = buildWithCallers(t, "", "callersFrom: [billing]", calls, newCaller("a"))
	if len(e.FindTenant("billing").Pending) != 0 || strings.Contains(e.Warnings.Error(), "waits") {
		t.Errorf("pending %q, warnings %s", e.FindTenant("billing").Pending, e.Warnings.Error())
	}
}

// TestTenantCallersAreBound expects that the operator records the two Tenants, that nothing opens
// before, and that a consent does not pass to later Tenants of the same names.
func TestTenantCallersAreBound(t *testing.T) {
	d, e := buildWithCallers(t, "", "callersFrom: [billing]", "calls: {shop: {}}",
		newCaller("api", func(o *v1alpha1.TenantCaller) { o.Status = v1alpha1.TenantCallerStatus{} }))
	check := func(step string, want int, refused string) {
		t.Helper()
		var problems document.Problems
		if e, problems = Build(d); problems.Err() != nil {
			t.Fatal(problems)
		}
		if got := len(e.Platform.Connections); got != want {
			t.Errorf("%s: %d connections, want %d", step, got, want)
		}
		decision := e.FindTenant("shop").Callers[0]
		if decision.Refused != refused {
			t.Errorf("%s: refused by %q, want %q", step, decision.Refused, refused)
		}
		d.Callers[0].Status.Giver, d.Callers[0].Status.Receiver = decision.Giver, decision.Receiver // as the operator does
	}
	billing := d.Tenants[1]
	d.Tenants = append(d.Tenants[:1:1], d.Tenants[2:]...)
	check("before the caller exists", 0, "")
	d.Tenants = append(d.Tenants, billing)
	check("the caller exists", 0, "")
	check("the two tenants are recorded", 1, "")
	check("again", 1, "")
	d.Tenants[2].UID = "billing-2"
	check("the caller was declared again", 0, v1alpha1.ReasonRefused)
	check("and again", 0, v1alpha1.ReasonRefused)
	d.Tenants[2].UID = "billing-1"
	check("the first caller", 1, "")
	d.Tenants[0].UID = "shop-2"
	check("the callee was declared again", 0, v1alpha1.ReasonRefused)
	d.Callers[0].Status = v1alpha1.TenantCallerStatus{}
	check("the later callee creates it again", 0, "")
	check("and it is recorded", 1, "")
	d.Tenants[2].DeletionTimestamp = &metav1.Time{Time: d.Now}
	check("the caller is being deleted", 0, "")
}

// TestTenantCallersAreLimited expects that the oldest TenantCallers for one tenant count, and that
// refused and expired ones take no place.
func TestTenantCallersAreLimited(t *testing.T) {
	var callers []v1alpha1.TenantCaller
	add := func(name string, age int, edits ...func(*v1alpha1.TenantCaller)) {
		o := newCaller(name, edits...)
		o.CreationTimestamp = metav1.Unix(int64(1000-age), 0)
		callers = append(callers, o)
	}
	for i := range MaxCallersPerTenant + 1 {
		add(fmt.Sprintf("c%02d", i), i)
	}
	add("expired", 500, func(o *v1alpha1.TenantCaller) { o.Spec.Until = "2020-01-01" })
	add("invalid", 501, func(o *v1alpha1.TenantCaller) { o.Spec.Ports[0] = intstr.FromInt32(0) })
	add("other", 502, func(o *v1alpha1.TenantCaller) { o.Spec.Tenant, o.Status.Receiver = "jobs", "jobs-1" })
	_, e := buildWithCallers(t, "", `callersFrom: ["*"]`, "calls: {shop: {}}", callers...)
	if got := len(e.Platform.Connections); got != MaxCallersPerTenant {
		t.Errorf("%d connections", got)
	}
	for _, d := range e.FindTenant("shop").Callers {
		if limited := d.Refused == v1alpha1.ReasonLimitReached; limited != (d.Name == "c00") {
			t.Errorf("%s: %s %s", d.Name, d.Refused, d.Message)
		}
	}
}

// TestTenantCallersEnd expects a rebuild at the end of each TenantCaller, and at no end that has passed.
func TestTenantCallersEnd(t *testing.T) {
	ends := func(until v1alpha1.ConsentEnd) func(*v1alpha1.TenantCaller) {
		return func(o *v1alpha1.TenantCaller) { o.Spec.Until = until }
	}
	for _, test := range []struct {
		name, billing string
		until, want   string
	}{
		{"open", "calls: {shop: {}}", "2026-12-31", "2027-01-01T00:00:00Z"},
		{"waiting", "", "2026-12-31", "2027-01-01T00:00:00Z"},
		{"passed", "calls: {shop: {}}", "2026-11-01", ""},
		{"without an end", "calls: {shop: {}}", "", ""},
	} {
		_, e := buildWithCallers(t, "", "callersFrom: [billing]", test.billing, newCaller("api", ends(v1alpha1.ConsentEnd(test.until))))
		got := ""
		if next := e.FindNextChange(); !next.IsZero() {
			got = next.UTC().Format(time.RFC3339)
		}
		if got != test.want {
			t.Errorf("%s: the next end is %q, want %q", test.name, got, test.want)
		}
	}
}

// TestInvalidCallersFrom expects one clear line for each mistake.
func TestInvalidCallersFrom(t *testing.T) {
	const content = base + "pools: {apps: }\ntenants:\n  shop: {pool: apps, network: {callersFrom: [%s]}}\n  billing: {pool: apps}\n"
	for _, test := range []badInput{
		{"the tenant itself", "shop", []string{
			"tenants.shop.network.callersFrom[0]: is the tenant itself, whose pods are always connected; name another tenant, or leave it out"}},
		{"no name", "billing, Billing", []string{
			`tenants.shop.network.callersFrom[1]: "Billing" must be the name of a tenant, or *`}},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, _, problems := parseAndBuild(fmt.Sprintf(content, test.content))
			var want []string
			for _, line := range test.want {
				want = append(want, "croft.yaml:9: "+line)
			}
			expectProblems(t, problems, want...)
		})
	}
	_, e := parseValid(t, fmt.Sprintf(content, `billng, "*", billing`))
	const want = "croft.yaml:9: tenants.shop.network.callersFrom[0]: warning: there is no tenant billng; did you mean billing?"
	if got := e.Warnings.Error(); got != want {
		t.Errorf("got %q", got)
	}
	_, e = parseValid(t, strings.TrimSuffix(base, "\n")+"  tenantDefaults: {callersFrom: [billng, billing]}\npools: {apps: }\ntenants:\n  billing: {pool: apps}\n")
	if got := e.Warnings.Error(); !strings.HasSuffix(got, "platform.tenantDefaults.callersFrom[0]: warning: there is no tenant billng; did you mean billing?") {
		t.Errorf("got %q", got)
	}
}
