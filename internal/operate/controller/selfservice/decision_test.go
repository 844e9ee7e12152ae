package selfservice

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
)

// TestJudge compares each request with its decision. In make test.
func TestJudge(t *testing.T) {
	namespace := func(tenant, anchor string, change func(*corev1.Namespace)) *corev1.Namespace {
		n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
			Name: "shop-a", Labels: map[string]string{v1alpha1.TenantLabel: tenant},
			Annotations: map[string]string{v1alpha1.RequestedAnnotation: anchor, v1alpha1.CreatedAnnotation: "true"},
		}}
		if change != nil {
			change(n)
		}
		return n
	}
	now := metav1.Now()
	for _, test := range []struct {
		name   string
		change func(*facts)
		want   string
	}{
		{"granted", nil, ""},
		{"none allowed", func(f *facts) { f.tenant.MayRequest = 0 }, v1alpha1.ReasonNotAllowed},
		{"in a requested namespace", func(f *facts) { f.anchor = "shop-b" }, v1alpha1.ReasonNotAllowed},
		{"in another's namespace", func(f *facts) { f.anchor = "bank" }, v1alpha1.ReasonNotAllowed},
		{"without the prefix", func(f *facts) { f.name = "payments" }, v1alpha1.ReasonNameNotAllowed},
		{"the prefix of another tenant", func(f *facts) { f.name = "shop-ci-x" }, v1alpha1.ReasonNameNotAllowed},
		{"the name of another tenant", func(f *facts) { f.name = "shop-ci" }, v1alpha1.ReasonNameNotAllowed},
		{"declared by the tenant", func(f *facts) { f.claimant = "shop" }, v1alpha1.ReasonNameTaken},
		{"declared by another tenant", func(f *facts) { f.claimant = "bank" }, v1alpha1.ReasonNameNotAllowed},
		{"as many as allowed", func(f *facts) { f.used["shop-c"] = true }, v1alpha1.ReasonLimitReached},
		{"more than allowed since", func(f *facts) { f.tenant.MayRequest = 1 }, v1alpha1.ReasonLimitReached},
		{"retained", func(f *facts) { f.existing = namespace("shop", "shop", nil) }, ""},
		{"retained, as many as allowed", func(f *facts) {
			f.existing = namespace("shop", "shop", nil)
			f.used["shop-c"] = true
		}, v1alpha1.ReasonLimitReached},
		{"being deleted", func(f *facts) {
			f.existing = namespace("shop", "shop", func(n *corev1.Namespace) { n.DeletionTimestamp = &now })
		}, v1alpha1.ReasonNameTaken},
		{"no tenant's", func(f *facts) { f.existing = &corev1.Namespace{} }, v1alpha1.ReasonNameTaken},
		{"offered for adoption", func(f *facts) {
			f.existing = &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{v1alpha1.AdoptAnnotation: "shop"}}}
		}, v1alpha1.ReasonNameTaken},
		{"another tenant's", func(f *facts) { f.existing = namespace("bank", "shop", nil) }, v1alpha1.ReasonNameTaken},
		{"retained in another place", func(f *facts) { f.existing = namespace("shop", "shop-db", nil) }, v1alpha1.ReasonNameTaken},
		{"the platform took it from the tenant", func(f *facts) { f.existing = namespace("shop", "", nil) }, v1alpha1.ReasonNameTaken},
		{"adopted", func(f *facts) {
			f.existing = namespace("shop", "shop", func(n *corev1.Namespace) { delete(n.Annotations, v1alpha1.CreatedAnnotation) })
		}, v1alpha1.ReasonNameTaken},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := facts{
				anchor: "shop", name: "shop-a", platform: &v1alpha1.PlatformSpec{},
				tenant: &estate.Tenant{
					Name: "shop", Namespaces: []string{"shop", "shop-db", "shop-b"}, Requested: map[string]string{"shop-b": "shop"}, MayRequest: 2,
				},
				known: func(name string) bool { return name == "shop" || name == "shop-ci" },
				used:  map[string]bool{"shop-b": true},
			}
			if test.change != nil {
				test.change(&f)
			}
			if got, why := decideRequest(f); got != test.want || (got == "") != (why == "") {
				t.Errorf("%q: %s, want %q", got, why, test.want)
			}
		})
	}
}
