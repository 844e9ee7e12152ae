package scratch

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
)

// TestFindExpired expects the objects of ended runs, and none of a running one, of a declared
// tenant, or of other users.
func TestFindExpired(t *testing.T) {
	now := time.Now()
	namespace := func(name string, age time.Duration, end *time.Time) client.Object {
		n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(now.Add(-age))}}
		if end != nil {
			Mark(n, *end)
		}
		return n
	}
	owned := func(o client.Object, tenant string) client.Object {
		o.SetLabels(map[string]string{v1alpha1.TenantLabel: tenant})
		return o
	}
	past, future := now.Add(-time.Hour), now.Add(time.Minute)
	left := FindExpired([]client.Object{
		namespace("croft-verify-aaaaa-a", time.Minute, &past), namespace("croft-verify-aaaaa-b-2", time.Minute, &past), namespace("croft-verify-aaaaa-a-free", time.Minute, nil),
		namespace("croft-verify-bbbbb-a", time.Hour, &future), namespace("croft-verify-bbbbb-a-free", time.Hour, nil),
		owned(namespace("croft-verify-ccccc-a", time.Hour, nil), "croft-verify-ccccc-a"),                                  // by a croft that marked no objects
		owned(namespace("croft-guard-croft-verify-ccccc-b", time.Hour, nil), "croft-verify-ccccc-b"),                      // the name of a cluster-wide policy
		owned(namespace("croft-guard-shop", time.Hour, nil), "shop"),                                                      // of a tenant
		owned(namespace("croft-verify-fffff-a", time.Hour, nil), "qa"), namespace("croft-verify-ggggg-a", time.Hour, nil), // has such a name by chance
		namespace("croft-verify-ddddd-a", time.Minute, nil),
		namespace("croft-verify-eeeee-a", time.Hour, nil), // a declared tenant
		namespace("croft-verify-nobody", time.Hour, &past), namespace("shop", time.Hour, &past),
	}, []string{"shop", "croft-verify-eeeee-a"}, now)
	if len(left) != 2 || left[0].Name != "aaaaa" || len(left[0].Objects) != 3 || left[1].Name != "ccccc" || len(left[1].Objects) != 2 {
		t.Errorf("left are %+v", left)
	}
}
