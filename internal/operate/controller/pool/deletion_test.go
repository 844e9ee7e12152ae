package pool

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/scheme"
)

// TestListRetained fails if a pool that is being deleted does not name the namespaces that it
// waits for, with their tenants, or if it waits for other namespaces.
func TestListRetained(t *testing.T) {
	namespace := func(name, tenant, pools string) *corev1.Namespace {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: map[string]string{v1alpha1.TenantLabel: tenant}, Annotations: map[string]string{v1alpha1.RulesAnnotationPrefix + "pools": pools},
		}}
	}
	claim := &karpenterv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "apps-x2x9p", Labels: map[string]string{karpenterv1.NodePoolLabelKey: "apps"}}}
	objects := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(namespace("shop-dev", "shop", "apps"), namespace("bank", "bank", "jobs")).Build()
	c := &Controller{reader: objects}
	if left, err := c.listRetained(t.Context(), "apps"); err != nil || len(left) > 0 {
		t.Errorf("a pool without nodes waits for %q, %v", left, err)
	}
	if err := objects.Create(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	left, err := c.listRetained(t.Context(), "apps")
	if err != nil {
		t.Fatal(err)
	}
	var pool v1alpha1.Pool
	(&observation{deleting: true, retained: left}).computeStatus(&pool)
	ready := meta.FindStatusCondition(pool.Status.Conditions, v1alpha1.ConditionReady)
	if ready == nil || ready.Reason != v1alpha1.ReasonInUse || !strings.Contains(ready.Message, "namespaces of deleted tenants have pods that belong on them: shop-dev (of tenant shop): declare these tenants again, or delete the namespaces") {
		t.Errorf("it reports %+v", ready)
	}
}
