package cli

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/declare/manifest"
	"croft.dev/croft/internal/diagnose/doctor"
	"croft.dev/croft/internal/diagnose/me"
	"croft.dev/croft/internal/diagnose/why"
)

// TestStatusOfManyTenants expects short output, with tenants that are not Ready first.
func TestStatusOfManyTenants(t *testing.T) {
	live := &manifest.Declaration{Platforms: []v1alpha1.Platform{newDefaultPlatform()}}
	for i := range 1000 {
		tenant := v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("t%04d", i)}}
		state := metav1.ConditionTrue
		if i == 777 {
			state = metav1.ConditionFalse
		}
		tenant.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: state, Reason: "Ready"}}
		live.Tenants = append(live.Tenants, tenant)
	}
	print := func(s *selection) string {
		t.Helper()
		look := &overview{selection: s, Platform: live.Platforms[0], Tenants: slices.Clone(live.Tenants), Operator: operatorStatus{believable: true}}
		if err := look.applySelection(); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		(&app{out: &out}).printStatus(look)
		return out.String()
	}
	text := print(&selection{})
	if lines := strings.Count(text, "\n"); lines > 60 || !strings.Contains(text, "\nt0777") || !strings.Contains(text, "30 of 1000 tenants, 1 of them not Ready: --not-ready lists those, --all lists all\n") {
		t.Errorf("%d lines:\n%s", lines, text)
	}
	if text := print(&selection{all: true}); strings.Count(text, "\nt") != 1000 {
		t.Errorf("--all lists %d", strings.Count(text, "\nt"))
	}
	if text := print(&selection{notReady: true}); strings.Count(text, "\nt") != 1 {
		t.Errorf("--not-ready lists %d", strings.Count(text, "\nt"))
	}
}

// TestStatusOfFile expects the columns that only an operator fills to be left out, and all
// pools of a tenant to be shown.
func TestStatusOfFile(t *testing.T) {
	d, problems := manifest.Parse("croft.yaml", []byte(`
platform: {clusterName: demo, nodeClass: {kwok: {}}}
pools: {apps: {}, jobs: {}}
tenants: {shop: {pools: [apps, jobs], namespaces: [shop, shop-ci]}}
`))
	e, more := estate.Build(d)
	if len(problems)+len(more) > 0 {
		t.Fatal(problems, more)
	}
	look := &overview{
		selection: &selection{}, rendered: true, Platform: d.Platforms[0], Pools: d.Pools, Tenants: d.Tenants,
		Operator: operatorStatus{believable: true},
	}
	look.resolveTenants(e)
	var out bytes.Buffer
	(&app{out: &out}).printStatus(look)
	for _, want := range []string{
		"PLATFORM   READY   REASON\n", "POOL   READY   REASON\n", "NAMESPACES     CPU   MEMORY   PODS\n",
		"shop     True    WallsStand   apps,jobs   shop,shop-ci   -     -        -\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("want %q in:\n%s", want, out.String())
		}
	}
	if text := out.String(); strings.Contains(text, "AGE") || strings.Contains(text, "<unknown>") {
		t.Errorf("a file has no age:\n%s", text)
	}
}

// TestContact expects a tenant's owner and contact in its status, in the wide table of all tenants
// and in croft me, but not in the usual table. A contact is an e-mail address, an https URL or a
// channel; all three fields are one line without invisible characters.
func TestContact(t *testing.T) {
	parse := func(field, value string) (*manifest.Declaration, error) {
		d, problems := manifest.Parse("croft.yaml", fmt.Appendf(nil, `
platform: {clusterName: demo, nodeClass: {kwok: {}}}
pools: {apps: {}}
tenants: {shop: {pool: apps, owner: Shop team, %s: %s}}
`, field, value))
		return d, problems.Err()
	}
	d, err := parse("contact", `"#shop-oncall"`)
	if err != nil {
		t.Fatal(err)
	}
	tenants := func(wide bool, names ...string) func(*app) {
		return func(a *app) {
			a.printTenants(&overview{selection: &selection{tenants: names}, Tenants: d.Tenants, wide: wide})
		}
	}
	for name, c := range map[string]struct {
		print func(a *app)
		want  bool
	}{
		"status of the tenant":         {tenants(false, "shop"), true},
		"status of all tenants":        {tenants(false), false},
		"status of all tenants, wide":  {tenants(true), true},
		"me":                           {func(a *app) { a.printMe(&me.Me{Declared: &d.Tenants[0].Spec}) }, true},
		"me without the Tenant":        {func(a *app) { a.printMe(&me.Me{}) }, false},
		"me without a contact":         {func(a *app) { a.printMe(&me.Me{Declared: &v1alpha1.TenantSpec{}}) }, false},
		"doctor about the tenant":      {func(a *app) { a.printCheckup(makeCheckup("#shop-oncall")) }, true},
		"doctor without a contact":     {func(a *app) { a.printCheckup(makeCheckup("")) }, false},
		"why, if the team can fix it":  {func(a *app) { printStory(a.out, why.Story{Contact: "#shop-oncall"}) }, true},
		"why, if the platform has to ": {func(a *app) { printStory(a.out, why.Story{}) }, false},
	} {
		var out bytes.Buffer
		c.print(&app{out: &out})
		if strings.Contains(out.String(), "#shop-oncall") != c.want {
			t.Errorf("%s: want the contact: %t, got:\n%s", name, c.want, out.String())
		}
		if owner := strings.Contains(out.String(), "Shop team"); owner != (c.want && strings.HasPrefix(name, "status")) {
			t.Errorf("%s: the owner: %t, got:\n%s", name, owner, out.String())
		}
	}
	for _, good := range []string{`shop@example.org`, `"a.b+c_d%e@shop-1.example.org"`, `"https://chat.example.org:8443/c/shop?a=b#c"`, `https://example.org`, `"#Geschäft_1.a-b"`, `""`} {
		if _, err := parse("contact", good); err != nil {
			t.Errorf("contact %s: %v", good, err)
		}
	}
	hidden := []string{`"a\nb"`, `"\e[31m"`, `"\u200b"`, `"\u202eb"`, strings.Repeat("a", 513)}
	for _, bad := range append(hidden,
		`+1 555 0100`, `shop`, `"@shop"`, `shop@`, `shop@localhost`, `a@b@example.org`, `"#"`, `"#a b"`, `"##a"`, `"#a\u200b"`, `http://example.org`,
		`javascript:alert(1)`, `https://`, `https://user@example.org`, `https://example.org/a b`, `"shop@example.org\n"`, `" #a"`, strings.Repeat("a", 250)+"@example.org",
	) {
		if _, err := parse("contact", bad); err == nil || !strings.Contains(err.Error(), "tenants.shop.contact") {
			t.Errorf("contact %s: %v", bad, err)
		}
	}
	for _, bad := range hidden {
		if _, err := parse("description", bad); err == nil || !strings.Contains(err.Error(), "tenants.shop.description") {
			t.Errorf("description %s: %v", bad, err)
		}
		if _, err := parse("protect: true}, bank: {pool: apps, owner", bad); err == nil || !strings.Contains(err.Error(), "tenants.bank.owner") {
			t.Errorf("owner %s: %v", bad, err)
		}
	}
	if _, err := parse("description", `'The shop, "cart" & more'`); err != nil {
		t.Errorf("a description: %v", err)
	}
}

// makeCheckup returns a finding about a tenant.
func makeCheckup(contact string) []doctor.Result {
	return []doctor.Result{{Check: "misplaced-pods", Findings: []doctor.Finding{{
		Severity: doctor.Problem, Object: "Tenant/shop", Contact: contact, Message: "pods run on another pool", Fix: "restart them",
	}}}}
}
