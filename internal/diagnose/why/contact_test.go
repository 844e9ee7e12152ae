package why_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/scheme"
	"croft.dev/croft/internal/diagnose/catalog"
	"croft.dev/croft/internal/diagnose/why"
)

// TestContact expects the contact of the tenant only if its team can fix the cause and the caller may
// read the Tenant.
func TestContact(t *testing.T) {
	shop := &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "shop"}, Spec: v1alpha1.TenantSpec{Contact: "#shop"}}
	rules := &v1alpha1.TenantRules{Spec: v1alpha1.TenantRulesSpec{Tenant: "shop"}}
	for name, c := range map[string]struct {
		who   catalog.Who
		rules *v1alpha1.TenantRules
		live  []client.Object
		want  string
	}{
		"the team":                       {catalog.Team, rules, []client.Object{shop}, "#shop"},
		"the platform":                   {catalog.Platform, rules, []client.Object{shop}, ""},
		"outside of tenants":             {catalog.Team, nil, []client.Object{shop}, ""},
		"a Tenant that cannot be read":   {catalog.Team, rules, nil, ""},
		"nothing to fix, and the Tenant": {"", rules, []client.Object{shop}, ""},
	} {
		story := why.Story{}
		if c.who != "" {
			story.First = &catalog.Finding{Who: c.who}
		}
		story.AddContact(t.Context(), fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(c.live...).Build(), &why.Snapshot{Rules: c.rules})
		if story.Contact != c.want {
			t.Errorf("%s: %q, want %q", name, story.Contact, c.want)
		}
	}
}
