package cli

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/manifest"
)

// TestCheckStuck tests when apply stops waiting: for problems that need a user's action, and
// not for changes that the operator has yet to observe.
func TestCheckStuck(t *testing.T) {
	const taken = "spec.domains[0]: x.example.org overlaps with x.example.org of tenant bank; a domain belongs to one tenant"
	status := func(reason, message string) v1alpha1.Status {
		return v1alpha1.Status{ObservedGeneration: 1, Conditions: []metav1.Condition{
			{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: reason, Message: message},
		}}
	}
	declare := func(pool string, s v1alpha1.Status) *manifest.Declaration {
		return &manifest.Declaration{
			Platforms: []v1alpha1.Platform{{
				ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.PlatformName},
				Spec:       v1alpha1.PlatformSpec{ClusterName: "demo", NodeClass: v1alpha1.NodeClass{Kwok: &v1alpha1.KwokNodeClass{}}},
			}},
			Pools: []v1alpha1.Pool{{ObjectMeta: metav1.ObjectMeta{Name: pool}}},
			Tenants: []v1alpha1.Tenant{{
				ObjectMeta: metav1.ObjectMeta{Name: "shop", Generation: 1}, Spec: v1alpha1.TenantSpec{Pool: "apps"},
				Status: v1alpha1.TenantStatus{Status: s},
			}},
		}
	}
	// transfer declares a domain for a tenant while it is in force for another, which may still declare it.
	transfer := func(declared ...string) *manifest.Declaration {
		d := declare("apps", status(v1alpha1.ReasonInvalid, taken))
		d.Tenants[0].Spec.Domains, d.Tenants[0].CreationTimestamp = []string{"x.example.org"}, metav1.Unix(2, 0)
		d.Tenants = append(d.Tenants, v1alpha1.Tenant{
			ObjectMeta: metav1.ObjectMeta{Name: "bank", CreationTimestamp: metav1.Unix(1, 0)}, Spec: v1alpha1.TenantSpec{Pool: "apps", Domains: declared},
			Status: v1alpha1.TenantStatus{Domains: []string{"x.example.org"}},
		})
		return d
	}
	shop := &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}
	shop.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("Tenant"))
	const noPool = "spec.pool: there is no pool apps; declare it, or name another"
	for _, test := range []struct {
		name     string
		live     *manifest.Declaration
		waited   time.Duration
		wantText string
	}{
		{"the pool is there, and the operator has not seen it", declare("apps", status(v1alpha1.ReasonInvalid, noPool)), 0, ""},
		{"the operator still refuses it", declare("apps", status(v1alpha1.ReasonInvalid, noPool)), time.Minute, noPool},
		{"there is no such pool", declare("jobs", status(v1alpha1.ReasonInvalid, noPool)), 0, "Tenant/shop: " + noPool},
		{"the domain was another tenant's until now", transfer(), 0, ""},
		{"the domain stays another tenant's", transfer(), time.Minute, taken},
		{"another tenant declares the domain, too", transfer("x.example.org"), 0, "Tenant/shop: " + taken},
		{"the API server has just rejected an object", declare("apps", status(v1alpha1.ReasonRejected, "ResourceQuota shop/croft: no")), 0, ""},
		{"the API server still rejects it", declare("apps", status(v1alpha1.ReasonRejected, "ResourceQuota shop/croft: no")), 5 * time.Second, "Tenant/shop: ResourceQuota shop/croft: no"},
		{"another owner's namespace", declare("apps", status(v1alpha1.ReasonNamespaceNotOwned, "namespace shop")), 5 * time.Second, "namespace shop"},
		{"a conflict", declare("apps", status(v1alpha1.ReasonApplyFailed, "changed")), time.Hour, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			var p patience
			now := time.Now()
			seen := evaluateReadiness(test.live, []client.Object{shop})
			err := p.checkStuck(seen, now)
			if test.waited > 0 {
				if err != nil {
					t.Errorf("it gave up at once: %v", err)
				}
				err = p.checkStuck(seen, now.Add(test.waited))
			}
			if (err != nil) != (test.wantText != "") || err != nil && !strings.Contains(err.Error(), test.wantText) {
				t.Errorf("error = %v, want %q", err, test.wantText)
			}
		})
	}
}
