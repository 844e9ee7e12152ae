package cli

import (
	"bytes"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/declare/manifest"
)

// TestShares tests a tenant whose quota is divided in the cluster.
func TestShares(t *testing.T) {
	list := func(pods, cpu string) corev1.ResourceList {
		return corev1.ResourceList{"pods": resource.MustParse(pods), "requests.cpu": resource.MustParse(cpu)}
	}
	live := &manifest.Declaration{
		Platforms: []v1alpha1.Platform{{
			ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.PlatformName},
			Spec:       v1alpha1.PlatformSpec{ClusterName: "demo", NodeClass: v1alpha1.NodeClass{Kwok: &v1alpha1.KwokNodeClass{}}},
		}},
		Pools: []v1alpha1.Pool{{ObjectMeta: metav1.ObjectMeta{Name: "apps"}}},
		Tenants: []v1alpha1.Tenant{{
			ObjectMeta: metav1.ObjectMeta{Name: "shop"},
			Spec:       v1alpha1.TenantSpec{Pool: "apps", Namespaces: []string{"web", "db", "new"}, Quota: list("10", "4")},
			Status: v1alpha1.TenantStatus{Shares: []v1alpha1.QuotaShare{
				{Namespace: "web", Hard: list("7", "3500m")}, {Namespace: "db", Hard: list("3", "500m")},
			}},
		}},
	}

	var out bytes.Buffer
	(&app{out: &out}).printStatus(&overview{selection: &selection{}, Platform: live.Platforms[0], Pools: live.Pools, Tenants: live.Tenants})
	for _, line := range []string{"shop     web         pods=7,requests.cpu=3500m", "shop     db          pods=3,requests.cpu=500m"} {
		if !strings.Contains(out.String(), line) {
			t.Errorf("no line %q in\n%s", line, out.String())
		}
	}

	e, problems := estate.Build(live)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	divideQuotas(e, live.Tenants)
	for namespace, want := range map[string]string{"web": "7", "db": "3", "new": "0"} {
		if pods := e.FindTenant("shop").Shares[namespace]["pods"]; pods.String() != want {
			t.Errorf("%s: %s pods, want %s", namespace, pods.String(), want)
		}
	}

	// A namespace that left the tenant keeps its share until the share is returned.
	live.Tenants[0].Spec.Namespaces = []string{"web"}
	e, problems = estate.Build(live)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	divideQuotas(e, live.Tenants)
	if pods := e.FindTenant("shop").Shares["web"]["pods"]; pods.String() != "7" {
		t.Errorf("the namespace that is left has %s pods, want 7", pods.String())
	}

	live.Tenants[0].Spec.Quota = nil
	if rows := listShares(live); len(rows) > 0 {
		t.Errorf("bounds without a declared quota: %v", rows)
	}
}
