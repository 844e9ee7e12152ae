package page_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/dashboard/page"
	"croft.dev/croft/internal/operate/heartbeat"
)

// TestOperator expects the words of croft status about the operator, and no condition of a tenant that an
// operator wrote which no longer runs.
func TestOperator(t *testing.T) {
	tenants := []v1alpha1.Tenant{{ObjectMeta: metav1.ObjectMeta{Name: "shop"}, Status: v1alpha1.TenantStatus{Status: v1alpha1.Status{
		Conditions: []metav1.Condition{{Type: "Ready", Status: metav1.ConditionTrue, Reason: "WallsStand"}},
	}}}}
	for name, c := range map[string]struct {
		beat        heartbeat.Beat
		want, lacks string
	}{
		"alive":      {heartbeat.Beat{At: now.Add(-3 * time.Second), Holder: "pod-1", Version: "v1"}, "Operator State ✓ alive, on pod-1, version v1", "NoOperator"},
		"lost":       {heartbeat.Beat{At: now.Add(-time.Hour), Holder: "pod-1"}, "Operator State ✗ no operator for 60m: the last ran on pod-1. The status of pools", "WallsStand"},
		"never":      {heartbeat.Beat{}, "no operator has run yet", "WallsStand"},
		"unreadable": {heartbeat.Beat{Hidden: true}, "WallsStand", "Operator"},
	} {
		text := renderText(t, page.AddOperator(page.NewTenants(tenants, page.Filter{WithoutOperator: !c.beat.IsBelievable(now)}, now), c.beat, now))
		if !strings.Contains(text, c.want) || strings.Contains(text, c.lacks) {
			t.Errorf("%s: no %q, or %q, in\n%s", name, c.want, c.lacks, text)
		}
	}
	early, err := page.Version(page.AddOperator(page.NewTenants(nil, page.Filter{}, now), heartbeat.Beat{At: now, Holder: "a"}, now))
	if err != nil {
		t.Fatal(err)
	}
	late, err := page.Version(page.AddOperator(page.NewTenants(nil, page.Filter{}, now), heartbeat.Beat{At: now.Add(10 * time.Second), Holder: "a"}, now.Add(11*time.Second)))
	if err != nil || late != early {
		t.Errorf("a heartbeat changes the page: %v", err)
	}
}
