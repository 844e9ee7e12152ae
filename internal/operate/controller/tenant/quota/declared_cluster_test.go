package quota_test

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/quotaplan"
	"croft.dev/croft/internal/operate/apply"
	"croft.dev/croft/internal/operate/operator/operatortest"
)

// testUncountedQuota covers the time in which a quota is written but not yet enforced.
func testUncountedQuota(f *fixture) {
	const manager = "kube-controller-manager"
	if err := f.Cluster.Stop(manager); err != nil {
		f.Fatal(err)
	}
	fresh := operatortest.NewTenant("fresh", "apps")
	fresh.Spec.Quota = makeResourceList("configmaps", "2")
	f.Create(fresh)
	condition := f.AwaitCondition(fresh, v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonNotEnforcedYet)
	if !strings.Contains(condition.Message, "has not counted the usage in fresh") {
		f.Errorf("the message does not name what is missing: %s", condition.Message)
	}
	for range 3 {
		f.Create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "fresh", GenerateName: "fresh-"}})
	}
	if n := f.CountBindings("fresh"); n > 0 {
		f.Errorf("%d bindings, where the quota does not hold", n)
	}
	if err := f.Cluster.Start(manager); err != nil {
		f.Fatal(err)
	}
	f.AwaitReady(fresh)
	if f.CountBindings("fresh") == 0 {
		f.Error("no member has access")
	}
	if err := f.Client.Create(f.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "fresh", Name: "late"}}); !apierrors.IsForbidden(err) {
		f.Errorf("the quota does not hold: %v", err)
	}
}

func testQuotaNamespaces(f *fixture) {
	grow := newSharedTenant("grow", []string{"grow-a"}, makeResourceList("configmaps", "40"))
	f.Create(grow)
	f.AwaitReady(grow)
	if len(grow.Status.Shares) > 0 {
		f.Errorf("a ledger for one namespace: %v", grow.Status.Shares)
	}
	f.Patch(grow, `{"spec":{"namespaces":["grow-a","grow-b"],"deletion":"Delete"}}`)
	quotas := f.awaitShares(grow)
	if len(quotas) != 2 || len(grow.Status.Shares) != 2 {
		f.Errorf("%d quotas, shares %v", len(quotas), grow.Status.Shares)
	}
	f.Patch(grow, `{"spec":{"namespaces":["grow-a"]}}`)
	f.AwaitDeletion(operatortest.NewNamespace("grow-b"))
	f.Await("the one that is left to have the whole", func() string {
		quota := f.listQuotas("grow")["grow-a"]
		if err := f.Client.Get(f.Context(), client.ObjectKeyFromObject(grow), grow); err != nil {
			return err.Error()
		}
		if !quotaplan.IsEqual(quota.Status.Hard, makeResourceList("configmaps", "40")) || len(grow.Status.Shares) > 0 {
			return fmt.Sprintf("%v, ledger %v", quota.Status.Hard, grow.Status.Shares)
		}
		return ""
	})
}

func testDeclaredQuota(f *fixture) {
	redeclared := newSharedTenant("redeclared", []string{"redeclared-a", "redeclared-b", "redeclared-c"}, makeResourceList("configmaps", "30", "pods", "10"))
	f.Create(redeclared)
	f.awaitShares(redeclared)
	for _, quota := range []string{
		`{"configmaps":"60","pods":"10"}`,
		`{"configmaps":"12","pods":"10"}`,
		`{"configmaps":"12","pods":null,"secrets":"9"}`,
	} {
		f.Patch(redeclared, `{"spec":{"quota":`+quota+`}}`)
		f.awaitShares(redeclared)
	}
	// Apply it as croft apply does: an empty quota is not the same as no quota.
	lifted := newSharedTenant("redeclared", redeclared.Spec.Namespaces, corev1.ResourceList{})
	lifted.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("Tenant"))
	if _, err := apply.New(f.Client).Apply(f.Context(), lifted); err != nil {
		f.Fatal(err)
	}
	f.AwaitReady(redeclared)
	f.Await("the quotas to go", func() string {
		if err := f.Client.Get(f.Context(), client.ObjectKeyFromObject(redeclared), redeclared); err != nil {
			return err.Error()
		}
		if quotas := f.listQuotas("redeclared"); len(quotas) > 0 || len(redeclared.Status.Shares) > 0 {
			return fmt.Sprintf("%d quotas, ledger %v", len(quotas), redeclared.Status.Shares)
		}
		return ""
	})
	f.Patch(redeclared, `{"spec":{"quota":{"configmaps":"30"}}}`)
	f.awaitShares(redeclared)
}

func testBuiltinQuota(f *fixture) {
	plain := operatortest.NewTenant("plain", "apps")
	f.Create(plain)
	f.AwaitReady(plain)
	quota := f.listQuotas("plain")["plain"]
	for _, name := range []corev1.ResourceName{"secrets", "configmaps", "count/pods", "count/leases.coordination.k8s.io", "count/certificates.cert-manager.io"} {
		if hard := quota.Status.Hard[name]; hard.Sign() <= 0 {
			f.Errorf("%s: %s", name, hard.String())
		}
	}
	for name := range quota.Status.Hard {
		if _, group, _ := strings.Cut(string(name), "."); strings.Contains(group, ".") && !strings.HasSuffix(group, ".k8s.io") || strings.HasSuffix(group, "gateway.networking.k8s.io") {
			continue // an add-on's kind, which is not installed
		}
		if _, ok := quota.Status.Used[name]; !ok {
			f.Errorf("%s is not counted", name)
		}
	}
}
