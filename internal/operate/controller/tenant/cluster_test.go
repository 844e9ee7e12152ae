package tenant_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/operate/operator/operatortest"
	"croft.dev/croft/internal/test/sandbox"
)

// fixture is a cluster with croft installed.
type fixture struct{ *operatortest.Fixture }

// TestTenant covers the life of tenants on one control plane. No subtest depends on another:
// each has its own tenants and namespaces.
func TestTenant(t *testing.T) {
	sandbox.EndToEnd(t)
	f := operatortest.Start(t, sandbox.WithControllers)
	stop := f.Operate()
	defer func() { stop() }()
	shop := operatortest.NewTenant("shop", "apps")
	f.Create(operatortest.NewPlatform(), operatortest.NewPool("apps"), shop)
	f.AwaitReady(shop)
	for _, test := range []struct {
		name string
		run  func(*fixture)
	}{
		{"a tenant has what it declares", testReadyTenant},
		{"repairs are reported", testReportedRepairs},
		{"a status that was not written is completed", testCompletedStatus},
		{"an object is rejected", testReportedRejection},
		{"a domain is another's, and then is not", testCorrectedDomain},
		{"a tenant is written that croft check refuses", testRefusedTenant},
		{"a namespace is refused, and then adopted", testAdoptedNamespace},
		{"a namespace is another tenant's", testContestedNamespace},
		{"a namespace loses its label", testUnlabelledNamespace},
		{"labels and annotations of namespaces are declared", testLabelledNamespace},
		{"objects of namespaces are declared", testMaintainedObjects},
		{"a namespace is declared no longer", testDroppedNamespace},
		{"a namespace is given to another tenant", testGivenNamespace},
		{"two tenants agree to a connection", testAgreedConnection},
		{"a team accepts a caller", testAcceptedCaller},
		{"connections end while no operator runs", func(f *fixture) { testEndedConnections(f, &stop) }},
		{"a tenant is deleted and its namespaces are retained", testRetainedTenant},
		{"a tenant is deleted with its namespaces", testDeletedTenant},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(&fixture{f.For(t)}) })
	}
}

func testReadyTenant(f *fixture) {
	shop := operatortest.NewTenant("shop", "")
	f.AwaitReady(shop)
	if shop.Status.Pool != "apps" || !slices.Equal(shop.Status.Pools, []string{"apps"}) || !slices.Equal(shop.Status.Namespaces, []string{"shop"}) || len(shop.Status.Domains) != 2 {
		f.Errorf("status = %+v", shop.Status)
	}
	if f.CountBindings("shop") == 0 || len(f.ListPolicies("shop")) == 0 {
		f.Error("no RoleBinding or no NetworkPolicy")
	}
	f.RefuseEvent(shop, "NamespaceCreated")
}

// testRefusedTenant declares objects that the API server would refuse. croft writes none of the
// tenant's objects, and the condition has the same message as croft check.
func testRefusedTenant(f *fixture) {
	refused := operatortest.NewTenant("refused", "apps")
	refused.Spec.Quota = corev1.ResourceList{"cpus": resource.MustParse("4")}
	f.Create(refused)
	condition := f.AwaitCondition(refused, v1alpha1.ConditionAccepted, metav1.ConditionFalse, v1alpha1.ReasonInvalid)
	if want := "spec.quota[cpus]: a quota cannot limit cpus; did you mean cpu?"; condition.Message != want {
		f.Errorf("the message is %q, want %q", condition.Message, want)
	}
	f.Patch(refused, `{"spec":{"quota":{"cpus":null,"cpu":"4"}}}`)
	f.AwaitReady(refused)
}

func testCorrectedDomain(f *fixture) {
	first, second := operatortest.NewTenant("first", "apps"), operatortest.NewTenant("second", "apps")
	first.Spec.Domains = []string{"www.example.edu"}
	f.Create(first)
	f.AwaitReady(first)
	f.Create(second)
	f.AwaitReady(second)

	f.Patch(second, `{"spec":{"domains":["www.example.edu"],"access":[]}}`)
	condition := f.AwaitCondition(second, v1alpha1.ConditionAccepted, metav1.ConditionFalse, v1alpha1.ReasonInvalid)
	if !strings.Contains(condition.Message, "first") {
		f.Errorf("the message does not name the other tenant: %s", condition.Message)
	}
	f.AwaitCondition(second, v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonInvalid)
	if f.CountBindings("second") == 0 {
		f.Error("existing objects of an invalid tenant were changed")
	}
	f.Patch(first, `{"spec":{"domains":null}}`)
	f.AwaitReady(second)
	if f.CountBindings("second") != 0 {
		f.Error("access that was taken away is still there")
	}
	if !slices.Contains(second.Status.Domains, "www.example.edu") {
		f.Errorf("domains = %v", second.Status.Domains)
	}

	// The older tenant does not get it back: the walls of the younger one would still allow it.
	f.Patch(first, `{"spec":{"domains":["www.example.edu"]}}`)
	f.AwaitCondition(first, v1alpha1.ConditionAccepted, metav1.ConditionFalse, v1alpha1.ReasonInvalid)
	f.AwaitReady(second)
	f.Patch(first, `{"spec":{"domains":null}}`)
	f.AwaitReady(first)
}

// testCompletedStatus fails if an operator that remembers that the walls of a tenant are
// enforced assumes that status.placement was written, too. That write may have lost a race.
// The e2e test testSteadyState found it: the next operator wrote the field.
func testCompletedStatus(f *fixture) {
	shop := operatortest.NewTenant("shop", "")
	f.PatchStatus(shop, `{"status":{"placement":null}}`)
	n := 0
	f.Await("the placement engine to be in the status again", func() string {
		// Another manager's label on the namespace makes croft reconcile the tenant, but
		// requires no write.
		n++
		f.Patch(operatortest.NewNamespace("shop"), fmt.Sprintf(`{"metadata":{"labels":{"looked-at":"%d"}}}`, n))
		if err := f.Client.Get(f.Context(), client.ObjectKeyFromObject(shop), shop); err != nil {
			return err.Error()
		}
		if shop.Status.Placement != v1alpha1.PlacementNative {
			return fmt.Sprintf("it is %q", shop.Status.Placement)
		}
		return ""
	})
	f.Patch(operatortest.NewNamespace("shop"), `{"metadata":{"labels":{"looked-at":null}}}`)
}

func testRetainedTenant(f *fixture) {
	kept := operatortest.NewTenant("kept", "apps")
	f.Create(kept)
	f.AwaitReady(kept)
	f.Delete(kept)
	f.AwaitDeletion(kept)
	if n := f.CountBindings("kept"); n != 0 {
		f.Errorf("%d bindings", n)
	}
	live := operatortest.NewNamespace("kept")
	if err := f.Client.Get(f.Context(), client.ObjectKeyFromObject(live), live); err != nil || live.DeletionTimestamp != nil {
		f.Errorf("the namespace: %v, deleted %v", err, live.DeletionTimestamp)
	}
	if len(f.ListPolicies("kept")) == 0 {
		f.Error("the walls are deleted")
	}
	// A tenant that is declared again gets its namespace back.
	again := operatortest.NewTenant("kept", "apps")
	f.Create(again)
	f.AwaitReady(again)
	if f.CountBindings("kept") == 0 {
		f.Error("no access")
	}
}

func testDeletedTenant(f *fixture) {
	moving, adopted, created := f.adoptNamespace("moving")
	f.Patch(moving, `{"spec":{"namespaces":["`+adopted+`"]}}`)
	f.AwaitReady(moving)
	f.Patch(moving, `{"spec":{"deletion":"Delete"}}`)
	f.AwaitDeletion(operatortest.NewNamespace(created))
	f.Patch(moving, `{"spec":{"namespaces":["`+adopted+`","later"]}}`)
	f.AwaitReady(moving)
	f.Delete(moving)
	f.AwaitDeletion(moving)
	f.AwaitDeletion(operatortest.NewNamespace("later"))
	live := operatortest.NewNamespace(adopted)
	if err := f.Client.Get(f.Context(), client.ObjectKeyFromObject(live), live); err != nil || live.DeletionTimestamp != nil {
		f.Fatalf("the adopted namespace: %v, deleted %v", err, live.DeletionTimestamp)
	}
	if len(live.Labels) != 1 || len(live.Annotations) != 0 || len(f.ListPolicies(adopted)) != 0 {
		f.Errorf("not released: labels %v, annotations %v", live.Labels, live.Annotations)
	}
}
