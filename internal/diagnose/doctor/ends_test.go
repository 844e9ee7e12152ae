package doctor

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/manifest"
)

// TestCheckEnds expects a problem for a granted namespace that exists a minute after its end.
func TestCheckEnds(t *testing.T) {
	now := time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)
	at := func(end time.Time) v1alpha1.TenantNamespace {
		return v1alpha1.TenantNamespace{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "shop-a"},
			Status:     v1alpha1.TenantNamespaceStatus{Tenant: "shop", Until: &metav1.Time{Time: end}},
		}
	}
	refused, deleted := at(now.Add(-time.Hour)), at(now.Add(-time.Hour))
	refused.Status.Tenant = ""
	deleted.DeletionTimestamp = &metav1.Time{Time: now}
	for name, c := range map[string]struct {
		request v1alpha1.TenantNamespace
		want    string
	}{
		"an hour ago":     {at(now.Add(-time.Hour)), "namespace shop-a of tenant shop ended at 2026-12-01T11:00:00Z, and still exists"},
		"a moment ago":    {at(now.Add(-time.Minute)), ""},
		"in an hour":      {at(now.Add(time.Hour)), ""},
		"without an end":  {v1alpha1.TenantNamespace{Status: v1alpha1.TenantNamespaceStatus{Tenant: "shop"}}, ""},
		"not granted":     {refused, ""},
		"already deleted": {deleted, ""},
	} {
		t.Run(name, func(t *testing.T) {
			found := checkEnds(&Snapshot{Now: now, Declared: &manifest.Declaration{Requests: []v1alpha1.TenantNamespace{c.request}}})
			if len(found) > 0 != (c.want != "") || len(found) > 0 && !strings.Contains(found[0].Message, c.want) {
				t.Errorf("found %v, want %q", found, c.want)
			}
		})
	}
}
