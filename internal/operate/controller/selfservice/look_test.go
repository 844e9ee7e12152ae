package selfservice

import (
	"maps"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
)

// TestCountNamespace fails if a declared namespace, or the requested one, counts towards the
// limit.
func TestCountNamespace(t *testing.T) {
	f := facts{
		name: "shop-a", used: map[string]bool{},
		tenant: &estate.Tenant{Name: "shop", Namespaces: []string{"shop", "shop-b"}, Requested: map[string]string{"shop-b": "shop"}},
	}
	for _, name := range []string{"shop", "shop-a", "shop-b", "shop-c", "shop-b"} {
		f.countNamespace(name)
	}
	if got := slices.Sorted(maps.Keys(f.used)); !slices.Equal(got, []string{"shop-b", "shop-c"}) {
		t.Errorf("counted %v", got)
	}
}

// TestTenantPredicate fails if requests are not reconciled when their tenant changes, or if they
// are for other changes of its status.
func TestTenantPredicate(t *testing.T) {
	before := &v1alpha1.Tenant{}
	before.Status.ObservedGeneration, before.Status.Namespaces = 1, []string{"shop"}
	before.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse}}
	for name, test := range map[string]struct {
		change func(*v1alpha1.Tenant)
		want   bool
	}{
		"nothing":     {func(*v1alpha1.Tenant) {}, false},
		"generation":  {func(t *v1alpha1.Tenant) { t.Status.ObservedGeneration = 2 }, true},
		"namespaces":  {func(t *v1alpha1.Tenant) { t.Status.Namespaces = []string{"shop", "shop-a"} }, true},
		"ready":       {func(t *v1alpha1.Tenant) { t.Status.Conditions[0].Status = metav1.ConditionTrue }, true},
		"why not yet": {func(t *v1alpha1.Tenant) { t.Status.Conditions[0].Message = "a" }, false},
		"shares":      {func(t *v1alpha1.Tenant) { t.Status.Shares = []v1alpha1.QuotaShare{{Namespace: "shop"}} }, false},
	} {
		after := before.DeepCopy()
		test.change(after)
		if got := newTenantPredicate().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}); got != test.want {
			t.Errorf("%s: %t, want %t", name, got, test.want)
		}
	}
}
