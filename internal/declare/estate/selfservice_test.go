package estate

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/manifest"
)

// TestMayRequest tests which names a tenant may request. In make test.
func TestMayRequest(t *testing.T) {
	platform := &v1alpha1.PlatformSpec{Network: v1alpha1.PlatformNetwork{PlatformNamespaces: []string{"shop-ingress"}}}
	tenants := []string{"shop", "shop-ci", "shop-ci-eu", "kube", "croft", "bank"}
	known := func(name string) bool { return slices.Contains(tenants, name) }
	for _, test := range []struct {
		tenant, name string
		may          bool
	}{
		{"shop", "shop-test", true},
		{"shop", "shop-c", true},
		{"shop", "shop-cix", true},
		{"shop", "shop--ci", true},
		{"shop", "shop-bank", true},
		{"shop", "shop-test-ci", true},
		{"shop-ci", "shop-ci-x", true},
		{"shop", "shop", false},
		{"shop", "shop-", false},
		{"shop", "shops", false},
		{"shop", "test", false},
		{"shop", "my-shop-test", false},
		{"shop", "bank-x", false},
		{"shop", "shop-ci", false},
		{"shop", "shop-ci-x", false},
		{"shop", "shop-ci-eu-x", false},
		{"shop-ci", "shop-ci-eu", false},
		{"shop-ci", "shop-ci-eu-x", false},
		{"shop-ci", "shop-x", false},
		{"shop", "shop-ingress", false},
		{"kube", "kube-system", false},
		{"kube", "kube-x", false},
		{"croft", v1alpha1.SystemNamespace, false},
		{"croft", v1alpha1.ElevationsNamespace, false},
	} {
		reason, why := CheckRequest(platform, test.tenant, test.name, known)
		if (reason == "") != test.may || (why == "") != test.may {
			t.Errorf("%s asks for %s: %s %s", test.tenant, test.name, reason, why)
		}
		if strings.Contains(why, "tenant shop-ci") {
			t.Errorf("%s asks for %s, and the message names another tenant: %s", test.tenant, test.name, why)
		}
	}
}

// TestRequested tests the effect of granted requests on an estate. In make test.
func TestRequested(t *testing.T) {
	const content = base + `pools: {apps: }
tenants:
  shop: {pool: apps, namespaces: [shop, shop-db], selfService: {namespaces: 3}, quota: {pods: 30}}
  bank: {pool: apps}
`
	type request struct {
		anchor, name, tenant string
		leaving              bool
	}
	many := func(n int) []request {
		all := make([]request, n)
		for i := range all {
			all[i] = request{anchor: "shop", name: fmt.Sprintf("shop-%d", i), tenant: "shop"}
		}
		return all
	}
	for _, test := range []struct {
		name     string
		requests []request
		shop     string
		bank     string
		problem  string
	}{
		{"none", nil, "shop shop-db", "bank", ""},
		{"granted, sorted", []request{{anchor: "shop-db", name: "shop-b", tenant: "shop"}, {anchor: "shop", name: "shop-a", tenant: "shop"}}, "shop shop-db shop-a shop-b", "bank", ""},
		{"not granted", []request{{anchor: "shop", name: "shop-a"}}, "shop shop-db", "bank", ""},
		{"granted and being deleted", []request{{anchor: "shop", name: "shop-a", tenant: "shop", leaving: true}}, "shop shop-db", "bank", ""},
		{"twice", []request{{anchor: "shop", name: "shop-a", tenant: "shop"}, {anchor: "shop-db", name: "shop-a", tenant: "shop"}}, "shop shop-db shop-a", "bank", ""},
		{"in another's namespace", []request{{anchor: "bank", name: "shop-a", tenant: "shop"}}, "shop shop-db", "bank", ""},
		{"in a requested namespace", []request{{anchor: "shop", name: "shop-a", tenant: "shop"}, {anchor: "shop-a", name: "shop-b", tenant: "shop"}}, "shop shop-db shop-a", "bank", ""},
		{"in a namespace of no tenant", []request{{anchor: "lost", name: "shop-a", tenant: "shop"}}, "shop shop-db", "bank", ""},
		{"to a tenant that was", []request{{anchor: "shop", name: "old-a", tenant: "old"}}, "shop shop-db", "bank", ""},
		{"declared since the request", []request{{anchor: "shop", name: "shop-db", tenant: "shop"}}, "shop shop-db", "bank", ""},
		{"declared later by another tenant", []request{{anchor: "shop", name: "bank", tenant: "shop"}}, "shop shop-db bank", "", "tenants.bank: namespace bank belongs to tenant shop"},
		{"the platform's since the request", []request{{anchor: "shop", name: "kube-a", tenant: "shop"}}, "", "bank", "tenants.shop.selfService: kube-a was granted"},
		{"too many", many(63), "", "bank", "declares 2 namespaces and was granted 63"},
	} {
		t.Run(test.name, func(t *testing.T) {
			d, problems := manifest.Parse("croft.yaml", []byte(content))
			if err := problems.Err(); err != nil {
				t.Fatal(err)
			}
			for _, r := range test.requests {
				o := v1alpha1.TenantNamespace{ObjectMeta: metav1.ObjectMeta{Namespace: r.anchor, Name: r.name}}
				o.Status.Tenant = r.tenant
				if r.leaving {
					o.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
				}
				d.Requests = append(d.Requests, o)
			}
			e, problems := Build(d)
			if !strings.Contains(problems.Error(), test.problem) || (len(problems) > 0) != (test.problem != "") {
				t.Errorf("problems: %v, want %q", problems, test.problem)
			}
			for name, want := range map[string]string{"shop": test.shop, "bank": test.bank} {
				var got []string
				if tenant := e.FindTenant(name); tenant != nil {
					got = tenant.Namespaces
					if shares := slices.Sorted(maps.Keys(tenant.Shares)); name == "shop" && !slices.Equal(shares, slices.Sorted(slices.Values(got))) {
						t.Errorf("shares are of %v, namespaces are %v", shares, got)
					}
				}
				if strings.Join(got, " ") != want {
					t.Errorf("%s has %v, want %s", name, got, want)
				}
			}
		})
	}
}
