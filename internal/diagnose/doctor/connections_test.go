package doctor

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
)

// TestConnectionsThatEnded expects a problem for each pair of tenants with a policy that allows a
// connection after its end, or without the consent of both.
func TestConnectionsThatEnded(t *testing.T) {
	now := time.Date(2027, 2, 1, 0, 0, 10, 0, time.UTC)
	policy := func(tenant, other string, end time.Time) metav1.PartialObjectMetadata {
		o := metav1.PartialObjectMetadata{
			TypeMeta: metav1.TypeMeta{Kind: "NetworkPolicy"},
			ObjectMeta: metav1.ObjectMeta{Namespace: tenant, Name: "croft-caller-" + other, Labels: map[string]string{
				v1alpha1.TenantLabel: tenant, v1alpha1.ConsentLabel: other,
			}},
		}
		if !end.IsZero() {
			o.Annotations = map[string]string{v1alpha1.UntilAnnotation: end.Format(time.RFC3339)}
		}
		return o
	}
	agreed := []estate.Connection{{Caller: "billing", Callee: "shop"}}
	accepted := []estate.Connection{{Caller: "billing", Callee: "web", CalleeNamespace: "web", TenantCaller: "api"}}
	s := &Snapshot{Now: now, Deleting: map[string]bool{"Tenant/leaving": true}, Estate: &estate.Estate{Tenants: []*estate.Tenant{
		{Name: "billing", Connections: agreed}, {Name: "jobs"}, {Name: "shop", Connections: agreed}, {Name: "web", Connections: accepted},
	}}}
	for _, test := range []struct {
		name   string
		policy metav1.PartialObjectMetadata
		want   string
	}{
		{"agreed", policy("shop", "billing", time.Time{}), ""},
		{"accepted in one namespace", policy("web", "billing", time.Time{}), ""},
		{"agreed until later", policy("billing", "shop", now.Add(time.Hour)), ""},
		{"ended a moment ago", policy("shop", "billing", now.Add(-time.Second)), ""},
		{"ended", policy("shop", "billing", now.Add(-10*time.Second)), "the connection between shop and billing ended at 2027-02-01T00:00:00Z, but NetworkPolicy shop/croft-caller-billing still allows it"},
		{"not agreed", policy("jobs", "billing", time.Time{}), "jobs and billing do not both agree to a connection, but NetworkPolicy jobs/croft-caller-billing still allows it"},
		{"with a tenant that is being deleted", policy("jobs", "leaving", time.Time{}), ""},
		{"ended for a tenant that is not valid", policy("broken", "shop", now.Add(-time.Hour)), "the connection between broken and shop ended"},
	} {
		s.Agreements = []metav1.PartialObjectMetadata{test.policy, test.policy}
		found := checkConnections(s)
		switch {
		case test.want == "" && len(found) > 0:
			t.Errorf("%s: %+v", test.name, found)
		case test.want != "" && (len(found) != 1 || !strings.HasPrefix(found[0].Message, test.want) || found[0].Fix == "" || found[0].Severity != Problem):
			t.Errorf("%s: %+v, want %s", test.name, found, test.want)
		}
	}
}
