package operator_test

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
)

func tenantHas(f *field) {
	shop := tenant("shop", "")
	f.ready(shop)
	if shop.Status.Pool != "apps" || !slices.Equal(shop.Status.Pools, []string{"apps"}) || !slices.Equal(shop.Status.Namespaces, []string{"shop"}) || len(shop.Status.Domains) != 2 {
		f.Errorf("status = %+v", shop.Status)
	}
	if f.bindings("shop") == 0 || len(f.policies("shop")) == 0 {
		f.Error("no RoleBinding or no NetworkPolicy")
	}
	f.event(shop, "NamespaceCreated", "created namespace shop")
	f.event(shop, "Ready", "every wall is in force")
	apps := pool("apps")
	f.ready(apps)
	if apps.Status.Tenants != 2 {
		f.Errorf("%d tenants, want 2", apps.Status.Tenants)
	}
}

// tenantRefused declares objects that the API server would refuse. croft writes none of the
// tenant's objects, and the condition has the same message as croft check.
func tenantRefused(f *field) {
	refused := tenant("refused", "apps")
	refused.Spec.Quota = corev1.ResourceList{"cpus": resource.MustParse("4")}
	f.create(refused)
	condition := f.condition(refused, v1alpha1.ConditionAccepted, metav1.ConditionFalse, v1alpha1.ReasonInvalid)
	if want := "spec.quota[cpus]: a quota cannot limit cpus; did you mean cpu?"; condition.Message != want {
		f.Errorf("the message is %q, want %q", condition.Message, want)
	}
	f.patch(refused, `{"spec":{"quota":{"cpus":null,"cpu":"4"}}}`)
	f.ready(refused)
}

func domainMended(f *field) {
	first, second := tenant("first", "apps"), tenant("second", "apps")
	first.Spec.Domains = []string{"www.example.edu"}
	f.create(first)
	f.ready(first)
	f.create(second)
	f.ready(second)

	f.patch(second, `{"spec":{"domains":["www.example.edu"],"access":[]}}`)
	condition := f.condition(second, v1alpha1.ConditionAccepted, metav1.ConditionFalse, v1alpha1.ReasonInvalid)
	if !strings.Contains(condition.Message, "first") {
		f.Errorf("the message does not name the other tenant: %s", condition.Message)
	}
	f.condition(second, v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonInvalid)
	if f.bindings("second") == 0 {
		f.Error("what stood was touched for a tenant that is invalid")
	}
	f.patch(first, `{"spec":{"domains":null}}`)
	f.ready(second)
	if f.bindings("second") != 0 {
		f.Error("access that was taken away is still there")
	}
	if !slices.Contains(second.Status.Domains, "www.example.edu") {
		f.Errorf("domains = %v", second.Status.Domains)
	}
}

// statusCompleted fails if an operator that remembers that the walls of a tenant are
// enforced assumes that status.placement was written, too. That write may have lost a race.
// The e2e test testSteadyState found it: the next operator wrote the field.
func statusCompleted(f *field) {
	shop := tenant("shop", "")
	if err := f.client.Status().Patch(f.Context(), shop, client.RawPatch(types.MergePatchType, []byte(`{"status":{"placement":null}}`))); err != nil {
		f.Fatal(err)
	}
	n := 0
	f.eventually("the placement engine to be in the status again", func() string {
		// Another manager's label on the namespace makes croft reconcile the tenant, but
		// requires no write.
		n++
		f.patch(namespace("shop"), fmt.Sprintf(`{"metadata":{"labels":{"looked-at":"%d"}}}`, n))
		if err := f.client.Get(f.Context(), client.ObjectKeyFromObject(shop), shop); err != nil {
			return err.Error()
		}
		if shop.Status.Placement != v1alpha1.PlacementNative {
			return fmt.Sprintf("it is %q", shop.Status.Placement)
		}
		return ""
	})
	f.patch(namespace("shop"), `{"metadata":{"labels":{"looked-at":null}}}`)
}

func tenantRetained(f *field) {
	second := tenant("early", "")
	f.ready(second)
	f.delete(second)
	f.gone(second)
	if n := f.bindings("early"); n != 0 {
		f.Errorf("%d bindings", n)
	}
	live := namespace("early")
	if err := f.client.Get(f.Context(), client.ObjectKeyFromObject(live), live); err != nil || live.DeletionTimestamp != nil {
		f.Errorf("the namespace: %v, deleted %v", err, live.DeletionTimestamp)
	}
	if len(f.policies("early")) == 0 {
		f.Error("the walls are gone")
	}
	// A tenant that is declared again gets its namespace back.
	again := tenant("early", "apps")
	f.create(again)
	f.ready(again)
	if f.bindings("early") == 0 {
		f.Error("no access")
	}
}

func tenantDeleted(f *field) {
	moving := tenant("moving", "")
	f.ready(moving)
	f.patch(moving, `{"spec":{"deletion":"Delete"}}`)
	f.gone(namespace("fresh"))
	f.patch(moving, `{"spec":{"namespaces":["legacy","later"]}}`)
	f.ready(moving)
	f.delete(moving)
	f.gone(moving)
	f.gone(namespace("later"))
	live := namespace("legacy")
	if err := f.client.Get(f.Context(), client.ObjectKeyFromObject(live), live); err != nil || live.DeletionTimestamp != nil {
		f.Fatalf("the adopted namespace: %v, deleted %v", err, live.DeletionTimestamp)
	}
	if len(live.Labels) != 1 || len(live.Annotations) != 0 || len(f.policies("legacy")) != 0 {
		f.Errorf("not released: labels %v, annotations %v", live.Labels, live.Annotations)
	}
}
