package quota_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/quotaplan"
	"croft.dev/croft/internal/operate/operator/operatortest"
	"croft.dev/croft/internal/test/sandbox"
	"croft.dev/croft/internal/walls/wall/policy"
)

// TestQuota covers quotas that all of a tenant's namespaces share.
func TestQuota(t *testing.T) {
	sandbox.EndToEnd(t)
	f := operatortest.Start(t, sandbox.WithControllers)
	stop := f.Operate()
	defer func() { stop() }()
	f.Create(operatortest.NewPlatform(), operatortest.NewPool("apps"))
	for _, test := range []struct {
		name string
		run  func(*fixture)
	}{
		{"what is given up is in force before others get it", func(f *fixture) { testLateQuota(f, &stop) }},
		{"many clients in many namespaces", testQuotaRush},
		{"what does not matter is not written", testQuietQuota},
		{"no access before it is counted", testUncountedQuota},
		{"one namespace, two, and one again", testQuotaNamespaces},
		{"the quota is declared again", testDeclaredQuota},
		{"no quota is declared", testBuiltinQuota},
		// A namespace needs more than an even share.
		{"a pod larger than the share gets what the others do not use", testLargePod},
		{"a namespace keeps its minimum", testQuotaMinimum},
		{"a forged refusal moves no share", testForgedRefusals},
		{"workloads whose pods are refused are counted", testCountedRefusals},
	} {
		if !t.Run(test.name, func(t *testing.T) {
			test.run(&fixture{f.For(t)})
		}) {
			return
		}
	}
}

// fixture is a cluster with croft installed, on which tenants share quotas.
type fixture struct{ *operatortest.Fixture }

// newSharedTenant returns a tenant with several namespaces and a quota.
func newSharedTenant(name string, namespaces []string, quota corev1.ResourceList) *v1alpha1.Tenant {
	t := operatortest.NewTenant(name, "apps")
	t.Spec.Namespaces, t.Spec.Quota = namespaces, quota
	return t
}

func makeResourceList(pairs ...string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		list[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return list
}

// listQuotas returns the tenant's ResourceQuotas by namespace.
func (f *fixture) listQuotas(tenant string) map[string]corev1.ResourceQuota {
	f.Helper()
	var list corev1.ResourceQuotaList
	if err := f.Client.List(f.Context(), &list, client.MatchingLabels{v1alpha1.TenantLabel: tenant}); err != nil {
		f.Fatal(err)
	}
	all := map[string]corev1.ResourceQuota{}
	for _, q := range list.Items {
		if q.Name == policy.Name {
			all[q.Namespace] = q
		}
	}
	return all
}

// formatQuotas formats quotas for the message of a failed test.
func formatQuotas(quotas map[string]corev1.ResourceQuota) string {
	var all strings.Builder
	for namespace, q := range quotas {
		for name, hard := range q.Status.Hard {
			used := q.Status.Used[name]
			fmt.Fprintf(&all, "%s %s %s/%s; ", namespace, name, used.String(), hard.String())
		}
	}
	return all.String()
}

// awaitShares waits until the shares are in force and add up to the quota, less at most a
// quarter of the unused amount: croft moves no share for so little unless a namespace runs
// short.
func (f *fixture) awaitShares(t *v1alpha1.Tenant) map[string]corev1.ResourceQuota {
	f.Helper()
	f.AwaitReady(t)
	var quotas map[string]corev1.ResourceQuota
	f.Await("the shares of "+t.Name+" to settle", func() string {
		if err := f.Client.Get(f.Context(), client.ObjectKeyFromObject(t), t); err != nil {
			return err.Error()
		}
		quotas = f.listQuotas(t.Name)
		for name, total := range t.Spec.Quota {
			sum, used := resource.Quantity{}, resource.Quantity{}
			for _, entry := range t.Status.Shares {
				quota := quotas[entry.Namespace]
				if !quotaplan.IsEqual(entry.Hard, quota.Spec.Hard) || !quotaplan.IsEqual(entry.Hard, quota.Status.Hard) {
					return fmt.Sprintf("%s: ledger %v, status %v", entry.Namespace, entry.Hard, quota.Status)
				}
				sum.Add(entry.Hard[name])
				used.Add(quota.Status.Used[name])
			}
			left, room := total.MilliValue()-sum.MilliValue(), total.MilliValue()-used.MilliValue()
			if left < 0 || left > 0 && 4*left >= room || len(t.Status.Shares) < len(t.Spec.Namespaces) {
				return fmt.Sprintf("%s: %s of %s: %v", name, sum.String(), total.String(), formatQuotas(quotas))
			}
		}
		return ""
	})
	return quotas
}

// awaitCountedShares waits until the shares of a new tenant are in force and the ConfigMap that
// Kubernetes creates in each namespace is counted. If it is created while
// kube-controller-manager counts for the first time, it is missed until the next count.
func (f *fixture) awaitCountedShares(t *v1alpha1.Tenant) map[string]corev1.ResourceQuota {
	f.Helper()
	var quotas map[string]corev1.ResourceQuota
	f.Await("the ConfigMaps of "+t.Name+" to be counted", func() string {
		quotas = f.awaitShares(t)
		for namespace, q := range quotas {
			if used := q.Status.Used["configmaps"]; used.Value() != 1 {
				// A deletion triggers a complete recount.
				o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "count-again"}}
				if err := client.IgnoreAlreadyExists(f.Client.Create(f.Context(), o)); err != nil {
					return err.Error()
				}
				if err := f.Client.Delete(f.Context(), o); err != nil {
					return err.Error()
				}
				return namespace + " has " + used.String()
			}
		}
		return ""
	})
	return quotas
}
