package status_test

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/scheme"
	"croft.dev/croft/internal/operate/controller/status"
)

// TestWriterWaitsForTheCache changes a condition to False and back while the cache still
// has the object from before both changes.
func TestWriterWaitsForTheCache(t *testing.T) {
	tenant := &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}
	status.Set(&tenant.Status.Status, 1, v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady, "")
	c := fake.NewClientBuilder().WithScheme(scheme.New()).WithStatusSubresource(tenant).WithObjects(tenant).Build()
	read := func() *v1alpha1.Tenant {
		t.Helper()
		live := &v1alpha1.Tenant{}
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(tenant), live); err != nil {
			t.Fatal(err)
		}
		return live
	}
	w := status.NewWriter(c)
	write := func(cached *v1alpha1.Tenant, value metav1.ConditionStatus) error {
		after := cached.DeepCopy()
		status.Set(&after.Status.Status, 1, v1alpha1.ConditionReady, value, v1alpha1.ReasonReady, "")
		return w.Patch(t.Context(), cached, after)
	}
	old := read()
	if err := write(old, metav1.ConditionFalse); err != nil {
		t.Fatal(err)
	}
	if err := write(old, metav1.ConditionTrue); !apierrors.IsConflict(err) {
		t.Errorf("the cache does not have the False yet, and there is no conflict to try again for: %v", err)
	}
	if err := write(read(), metav1.ConditionTrue); err != nil {
		t.Errorf("the cache has the False: %v", err)
	}
	if !meta.IsStatusConditionTrue(read().Status.Conditions, v1alpha1.ConditionReady) {
		t.Error("the condition did not turn back")
	}
	if err := write(read(), metav1.ConditionTrue); err != nil {
		t.Errorf("nothing is to be written: %v", err)
	}
}
