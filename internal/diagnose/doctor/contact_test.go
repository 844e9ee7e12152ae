package doctor

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/declare/manifest"
)

// TestContact expects a finding about a tenant to have the contact of this tenant.
func TestContact(t *testing.T) {
	s := &Snapshot{
		Now: time.Now(), Estate: &estate.Estate{Tenants: []*estate.Tenant{{Name: "bank"}, {Name: "shop"}}},
		Declared: &manifest.Declaration{Tenants: []v1alpha1.Tenant{
			{ObjectMeta: metav1.ObjectMeta{Name: "bank"}, Spec: v1alpha1.TenantSpec{Contact: "#bank"}},
			{ObjectMeta: metav1.ObjectMeta{Name: "shop"}, Spec: v1alpha1.TenantSpec{Contact: "#shop"}},
		}},
		Agreements: []metav1.PartialObjectMetadata{{
			TypeMeta: metav1.TypeMeta{Kind: "NetworkPolicy"},
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "croft-caller-bank", Labels: map[string]string{
				v1alpha1.TenantLabel: "shop", v1alpha1.ConsentLabel: "bank",
			}},
		}},
	}
	i := slices.IndexFunc(checks, func(c check) bool { return c.name == "connections" })
	if r := checks[i].run(s); len(r.Findings) != 1 || r.Findings[0].Contact != "#shop" {
		t.Errorf("%+v", r.Findings)
	}
	for _, object := range []string{"Tenant/lab", "Pool/shop", "shop", ""} {
		if contact := s.findContact(object); contact != "" {
			t.Errorf("%q has the contact %s", object, contact)
		}
	}
	if contact := (&Snapshot{}).findContact("Tenant/shop"); contact != "" {
		t.Errorf("without declared objects: %s", contact)
	}
}
