package tenant_test

import (
	"fmt"
	"slices"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/operate/operator/operatortest"
	"croft.dev/croft/internal/walls/wall/network"
)

func testAdoptedNamespace(f *fixture) {
	f.Create(operatortest.NewNamespace("legacy"))
	legacy := operatortest.NewTenant("adopting", "apps")
	legacy.Spec.Namespaces = []string{"legacy", "fresh"}
	f.Create(legacy)
	condition := f.AwaitCondition(legacy, v1alpha1.ConditionApplied, metav1.ConditionFalse, v1alpha1.ReasonNamespaceNotOwned)
	if !strings.Contains(condition.Message, "croft adopt tenant adopting -f croft.yaml") {
		f.Errorf("the message does not name the fix: %s", condition.Message)
	}
	if !slices.Equal(legacy.Status.Namespaces, []string{"fresh"}) {
		f.Errorf("namespaces = %v", legacy.Status.Namespaces)
	}
	f.AwaitEvent(legacy, v1alpha1.ReasonNamespaceNotOwned, "namespace legacy exists already")

	// The other namespace gets the walls of a new spec.
	allowsEgress := func() bool {
		return slices.ContainsFunc(f.ListPolicies("fresh"), func(p networkingv1.NetworkPolicy) bool { return p.Name == network.EgressPolicy })
	}
	if !allowsEgress() {
		f.Error("egress is not allowed")
	}
	f.Patch(legacy, `{"spec":{"network":{"egress":"Restricted"}}}`)
	f.Await("egress to be restricted", func() string {
		if allowsEgress() {
			return "it is allowed"
		}
		return ""
	})
	f.Patch(operatortest.NewNamespace("legacy"), `{"metadata":{"annotations":{"croft.dev/adopt":"adopting"}}}`)
	f.AwaitReady(legacy)
	f.AwaitEvent(legacy, "NamespaceAdopted", "legacy")
	f.AwaitEvent(legacy, v1alpha1.ReasonReady, "every wall is in force")
}

// testContestedNamespace fails if a tenant that may not have another tenant's namespace revokes
// access to it.
func testContestedNamespace(f *fixture) {
	older, owner := operatortest.NewTenant("older", "apps"), operatortest.NewTenant("owner", "apps")
	owner.Spec.Namespaces = []string{"owner", "contested"}
	f.Create(older)
	f.AwaitReady(older)
	f.Create(owner)
	f.AwaitReady(owner)
	before := f.CountBindings("contested")
	f.Patch(older, `{"spec":{"namespaces":["older","contested"],"access":[]}}`)
	f.AwaitCondition(older, v1alpha1.ConditionApplied, metav1.ConditionFalse, v1alpha1.ReasonNamespaceNotOwned)
	if after := f.CountBindings("contested"); before == 0 || after != before {
		f.Errorf("%d bindings, then %d", before, after)
	}
}

// adoptNamespace declares a tenant with two namespaces: croft adopts the first and creates the
// second.
func (f *fixture) adoptNamespace(name string) (t *v1alpha1.Tenant, adopted, created string) {
	f.Helper()
	adopted, created = name+"-adopted", name+"-created"
	old := operatortest.NewNamespace(adopted)
	old.Annotations = map[string]string{v1alpha1.AdoptAnnotation: name}
	t = operatortest.NewTenant(name, "apps")
	t.Spec.Namespaces = []string{adopted, created}
	f.Create(old, t)
	f.AwaitReady(t)
	return t, adopted, created
}

func testUnlabelledNamespace(f *fixture) {
	marked, adopted, created := f.adoptNamespace("marked")
	// croft created one namespace and adopted the other, whose annotation is removed here.
	f.Patch(operatortest.NewNamespace(adopted), `{"metadata":{"annotations":{"croft.dev/adopt":null}}}`)
	for _, name := range []string{created, adopted} {
		f.Patch(operatortest.NewNamespace(name), `{"metadata":{"labels":{"croft.dev/tenant":null}}}`)
		f.Await("the label of "+name+" to be put back", func() string {
			live := operatortest.NewNamespace(name)
			if err := f.Client.Get(f.Context(), client.ObjectKeyFromObject(live), live); err != nil {
				return err.Error()
			}
			if live.Labels[v1alpha1.TenantLabel] != "marked" || (live.Annotations[v1alpha1.CreatedAnnotation] == "true") != (name == created) {
				return fmt.Sprintf("labels %v, annotations %v", live.Labels, live.Annotations)
			}
			return ""
		})
		f.AwaitReady(marked)
	}
	f.AwaitRepair(marked, "Namespace "+created)

	// A namespace that another tenant owns by now is not taken back, and the tenant must
	// not be reported as enforced.
	f.Patch(operatortest.NewNamespace(created), `{"metadata":{"labels":{"croft.dev/tenant":"nobody"}}}`)
	f.AwaitCondition(marked, v1alpha1.ConditionApplied, metav1.ConditionFalse, v1alpha1.ReasonNamespaceNotOwned)
	f.AwaitCondition(marked, v1alpha1.ConditionEnforced, metav1.ConditionFalse, v1alpha1.ReasonNamespaceNotOwned)
	f.Patch(operatortest.NewNamespace(created), `{"metadata":{"labels":{"croft.dev/tenant":"marked"}}}`)
	f.AwaitReady(marked)
}

func testDroppedNamespace(f *fixture) {
	dropping, adopted, created := f.adoptNamespace("dropping")
	f.Patch(dropping, `{"spec":{"namespaces":["`+adopted+`"]}}`)
	f.Await("access to go", func() string {
		if n := f.CountBindings(created); n > 0 {
			return fmt.Sprintf("%d bindings", n)
		}
		return ""
	})
	if len(f.ListPolicies(created)) == 0 {
		f.Error("the walls of a namespace that is retained are deleted")
	}
}

// testGivenNamespace fails if a namespace that an admin gives to another tenant is deleted
// because its former tenant, which has deletion: Delete, no longer declares it.
func testGivenNamespace(f *fixture) {
	giver := operatortest.NewTenant("giver", "apps")
	giver.Spec.Namespaces, giver.Spec.Deletion = []string{"giver", "given"}, v1alpha1.DeletionDelete
	f.Create(giver)
	f.AwaitReady(giver)
	before := operatortest.NewNamespace("given")
	if err := f.Client.Get(f.Context(), client.ObjectKeyFromObject(before), before); err != nil {
		f.Fatal(err)
	}

	f.Patch(operatortest.NewNamespace("given"), `{"metadata":{"annotations":{"croft.dev/adopt":"taker"}}}`)
	f.Patch(giver, `{"spec":{"namespaces":["giver"]}}`)
	f.AwaitReady(giver)
	taker := operatortest.NewTenant("taker", "apps")
	taker.Spec.Namespaces = []string{"given"}
	f.Create(taker)
	f.AwaitReady(taker)

	after := operatortest.NewNamespace("given")
	if err := f.Client.Get(f.Context(), client.ObjectKeyFromObject(after), after); err != nil {
		f.Fatal(err)
	}
	if after.UID != before.UID || after.DeletionTimestamp != nil || after.Labels[v1alpha1.TenantLabel] != "taker" {
		f.Errorf("the namespace was %s, and is %s of %q, deleted %v", before.UID, after.UID, after.Labels[v1alpha1.TenantLabel], after.DeletionTimestamp)
	}
	if len(f.ListPolicies("given")) == 0 || f.CountBindings("given") == 0 {
		f.Error("it has no walls, or no role binding")
	}
	f.Delete(giver)
	f.AwaitDeletion(giver)
	f.Delete(taker)
	f.AwaitDeletion(taker)
}

// testLabelledNamespace declares labels and annotations, changes them in the cluster, and removes
// them from the declaration. Labels of other clients must stay.
func testLabelledNamespace(f *fixture) {
	labelled := operatortest.NewTenant("labelled", "apps")
	labelled.Spec.Namespace = v1alpha1.NamespaceMetadata{
		Labels: map[string]string{"team": "web", "project": "$(tenant)"}, Annotations: map[string]string{"note": "a b"},
	}
	f.Create(labelled)
	f.AwaitReady(labelled)
	expect := func(goal, want string) {
		f.Helper()
		f.Await(goal, func() string {
			live := operatortest.NewNamespace("labelled")
			if err := f.Client.Get(f.Context(), client.ObjectKeyFromObject(live), live); err != nil {
				return err.Error()
			}
			got := fmt.Sprintf("%s %s %s %s", live.Labels["team"], live.Labels["project"], live.Annotations["note"], live.Labels["other"])
			if got != want {
				return fmt.Sprintf("got %q, want %q", got, want)
			}
			return ""
		})
	}
	expect("the declared values", "web labelled a b ")
	f.Patch(operatortest.NewNamespace("labelled"), `{"metadata":{"labels":{"team":"ours","project":null,"other":"x"},"annotations":{"note":null}}}`)
	expect("the declared values to be repaired", "web labelled a b x")
	f.Patch(labelled, `{"spec":{"namespace":{"labels":{"team":null},"annotations":null}}}`)
	expect("the removed keys to be removed", " labelled  x")
	f.Patch(labelled, `{"spec":{"namespace":{"labels":{"team":"a b"}}}}`)
	f.AwaitCondition(labelled, v1alpha1.ConditionAccepted, metav1.ConditionFalse, v1alpha1.ReasonInvalid)
}
