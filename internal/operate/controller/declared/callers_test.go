package declared

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"croft.dev/croft/api/v1alpha1"
)

// TestIsCallerChanged expects a rebuild after changes of a consent, and none after a change of its
// conditions, which follow from the estate.
func TestIsCallerChanged(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(*v1alpha1.TenantCaller)
		want   bool
	}{
		{"nothing", func(*v1alpha1.TenantCaller) {}, false},
		{"a condition", func(o *v1alpha1.TenantCaller) { o.Status.Conditions = []metav1.Condition{{Type: "Agreed"}} }, false},
		{"a label", func(o *v1alpha1.TenantCaller) { o.Labels = map[string]string{"a": "b"} }, false},
		{"the spec", func(o *v1alpha1.TenantCaller) { o.Generation++ }, true},
		{"another object of the name", func(o *v1alpha1.TenantCaller) { o.UID = "2" }, true},
		{"a deletion", func(o *v1alpha1.TenantCaller) { o.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }, true},
		{"the giver", func(o *v1alpha1.TenantCaller) { o.Status.Giver = "1" }, true},
		{"the receiver", func(o *v1alpha1.TenantCaller) { o.Status.Receiver = "1" }, true},
	} {
		before := &v1alpha1.TenantCaller{ObjectMeta: metav1.ObjectMeta{Name: "api", UID: "1", Generation: 1}}
		after := before.DeepCopy()
		test.change(after)
		if got := isCallerChanged(before, after); got != test.want {
			t.Errorf("%s: %t", test.name, got)
		}
	}
}
