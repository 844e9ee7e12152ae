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
	"croft.dev/croft/internal/diagnose/me"
)

// TestStatusOfAThousandTenants expects short output, with tenants that are not Ready first.
func TestStatusOfAThousandTenants(t *testing.T) {
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

// TestStatusOfAFile expects the columns that only an operator fills to be left out, and all
// pools of a tenant to be shown.
func TestStatusOfAFile(t *testing.T) {
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

// TestContact expects a tenant's contact in its status and in croft me, but not in the table of all
// tenants. A contact is one line of at most 253 visible characters.
func TestContact(t *testing.T) {
	parse := func(contact string) (*manifest.Declaration, error) {
		d, problems := manifest.Parse("croft.yaml", fmt.Appendf(nil, `
platform: {clusterName: demo, nodeClass: {kwok: {}}}
pools: {apps: {}}
tenants: {shop: {pool: apps, contact: %s}}
`, contact))
		return d, problems.Err()
	}
	d, err := parse(`"#shop-oncall"`)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		print func(a *app)
		want  bool
	}{
		"status of the tenant": {func(a *app) {
			a.printTenants(&overview{selection: &selection{tenants: []string{"shop"}}, Tenants: d.Tenants})
		}, true},
		"status of all tenants": {func(a *app) { a.printTenants(&overview{selection: &selection{}, Tenants: d.Tenants}) }, false},
		"me":                    {func(a *app) { a.printMe(&me.Me{Declared: &d.Tenants[0].Spec}) }, true},
		"me without the Tenant": {func(a *app) { a.printMe(&me.Me{}) }, false},
		"me without a contact":  {func(a *app) { a.printMe(&me.Me{Declared: &v1alpha1.TenantSpec{}}) }, false},
	} {
		var out bytes.Buffer
		c.print(&app{out: &out})
		if strings.Contains(out.String(), "CONTACT") != c.want || strings.Contains(out.String(), "#shop-oncall") != c.want {
			t.Errorf("%s: want the contact: %t, got:\n%s", name, c.want, out.String())
		}
	}
	for _, contact := range []string{`"a\nb"`, `"\e[31m"`, `"\u200b"`, strings.Repeat("a", 254)} {
		if _, err := parse(contact); err == nil || !strings.Contains(err.Error(), "tenants.shop.contact") {
			t.Errorf("contact %s: %v", contact, err)
		}
	}
}
