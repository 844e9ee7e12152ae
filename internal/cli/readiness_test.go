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

// TestHopeless tests when apply stops waiting: for problems that need a user's action, and
// not for changes that the operator has yet to observe.
func TestHopeless(t *testing.T) {
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
		{"the operator goes on refusing it", declare("apps", status(v1alpha1.ReasonInvalid, noPool)), time.Minute, noPool},
		{"there is no such pool", declare("jobs", status(v1alpha1.ReasonInvalid, noPool)), 0, "Tenant/shop: " + noPool},
		{"the API server has just rejected an object", declare("apps", status(v1alpha1.ReasonRejected, "ResourceQuota shop/croft: no")), 0, ""},
		{"the API server goes on rejecting it", declare("apps", status(v1alpha1.ReasonRejected, "ResourceQuota shop/croft: no")), 5 * time.Second, "Tenant/shop: ResourceQuota shop/croft: no"},
		{"somebody else's namespace", declare("apps", status(v1alpha1.ReasonNamespaceNotOwned, "namespace shop")), 5 * time.Second, "namespace shop"},
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
