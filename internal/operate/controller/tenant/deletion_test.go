package tenant

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"croft.dev/croft/api/v1alpha1"
)

// TestReportDeletion fails if a tenant that is being deleted does not name the namespace
// that it waits for, or the reason why that namespace still exists.
func TestReportDeletion(t *testing.T) {
	held := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}, Status: corev1.NamespaceStatus{Conditions: []corev1.NamespaceCondition{
		{Type: corev1.NamespaceContentRemaining, Status: corev1.ConditionFalse, Message: "All content successfully removed"},
		{Type: corev1.NamespaceFinalizersRemaining, Status: corev1.ConditionTrue, Message: "Some content in the namespace has finalizers remaining: example.org/x in 1 resource instances"},
	}}}
	seen := observation{deleting: true, remainingNamespaces: []string{describeNamespace(held), describeNamespace(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "dev"}})}}
	var tenant v1alpha1.Tenant
	seen.computeStatus(&tenant)
	const want = "waiting until these namespaces are deleted: shop (NamespaceFinalizersRemaining: Some content in the namespace has finalizers remaining: example.org/x in 1 resource instances), dev"
	if n := len(tenant.Status.Conditions); n != 2 {
		t.Errorf("it has %d conditions", n)
	}
	for _, name := range []string{v1alpha1.ConditionReady, v1alpha1.ConditionReconciling} {
		if c := meta.FindStatusCondition(tenant.Status.Conditions, name); c == nil || c.Reason != v1alpha1.ReasonDeleting || c.Message != want {
			t.Errorf("%s is %+v", name, c)
		}
	}
}
