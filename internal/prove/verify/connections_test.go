package verify

import (
	"slices"
	"testing"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/scheme"
	"croft.dev/croft/internal/walls/wall/network"
)

// TestListConnections expects each connection of the tenant once, and none of other tenants.
func TestListConnections(t *testing.T) {
	policy := func(namespace, tenant, name, other string) *networkingv1.NetworkPolicy {
		return &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name,
			Labels:      map[string]string{v1alpha1.ManagedByLabel: v1alpha1.ManagedBy, v1alpha1.TenantLabel: tenant, v1alpha1.ConsentLabel: other},
			Annotations: map[string]string{v1alpha1.UntilAnnotation: "2027-02-01T00:00:00Z"},
		}}
	}
	endless := policy("mail", "mail", "croft-caller-shop", "shop")
	endless.Annotations = nil
	own := policy("shop", "shop", "croft-isolation", "")
	delete(own.Labels, v1alpha1.ConsentLabel)
	c := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(
		policy("shop", "shop", "croft-caller-billing", "billing"), policy("shop-2", "shop", "croft-caller-billing", "billing"),
		policy("billing", "billing", "croft-call-shop", "shop"), policy("billing", "billing", "croft-caller-mail", "mail"), endless, own,
	).Build()
	got, err := ListConnections(t.Context(), c, "shop")
	if err != nil {
		t.Fatal(err)
	}
	end := time.Date(2027, 2, 1, 0, 0, 0, 0, time.UTC)
	want := []network.OpenConnection{{Caller: "billing", Callee: "shop", End: end}, {Caller: "shop", Callee: "mail"}}
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
