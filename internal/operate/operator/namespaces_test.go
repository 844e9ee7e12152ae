package operator_test

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
)

func namespaceAdopted(f *field) {
	f.create(namespace("legacy"))
	legacy := tenant("moving", "apps")
	legacy.Spec.Namespaces = []string{"legacy", "fresh"}
	f.create(legacy)
	condition := f.condition(legacy, v1alpha1.ConditionApplied, metav1.ConditionFalse, v1alpha1.ReasonNamespaceNotOwned)
	if !strings.Contains(condition.Message, "croft adopt tenant moving -f croft.yaml") {
		f.Errorf("the message does not say what to do: %s", condition.Message)
	}
	if !slices.Equal(legacy.Status.Namespaces, []string{"fresh"}) {
		f.Errorf("namespaces = %v", legacy.Status.Namespaces)
	}
	f.event(legacy, v1alpha1.ReasonNamespaceNotOwned, "namespace legacy exists already")
	f.patch(namespace("legacy"), `{"metadata":{"annotations":{"croft.dev/adopt":"moving"}}}`)
	f.ready(legacy)
	f.event(legacy, "NamespaceAdopted", "legacy")
}

func namespaceUnlabelled(f *field) {
	moving := tenant("moving", "")
	f.ready(moving)
	// croft created one namespace and adopted the other, whose annotation is removed here.
	f.patch(namespace("legacy"), `{"metadata":{"annotations":{"croft.dev/adopt":null}}}`)
	for _, name := range []string{"fresh", "legacy"} {
		f.patch(namespace(name), `{"metadata":{"labels":{"croft.dev/tenant":null}}}`)
		f.eventually("the label of "+name+" to be put back", func() string {
			live := namespace(name)
			if err := f.client.Get(f.Context(), client.ObjectKeyFromObject(live), live); err != nil {
				return err.Error()
			}
			if live.Labels[v1alpha1.TenantLabel] != "moving" || (live.Annotations[v1alpha1.CreatedAnnotation] == "true") != (name == "fresh") {
				return fmt.Sprintf("labels %v, annotations %v", live.Labels, live.Annotations)
			}
			return ""
		})
		f.ready(moving)
	}
	f.event(moving, "Repaired", "Namespace fresh")

	// A namespace that another tenant owns by now is not taken back, and the tenant must
	// not be reported as enforced.
	f.patch(namespace("fresh"), `{"metadata":{"labels":{"croft.dev/tenant":"nobody"}}}`)
	f.condition(moving, v1alpha1.ConditionApplied, metav1.ConditionFalse, v1alpha1.ReasonNamespaceNotOwned)
	f.condition(moving, v1alpha1.ConditionEnforced, metav1.ConditionFalse, v1alpha1.ReasonNamespaceNotOwned)
	f.patch(namespace("fresh"), `{"metadata":{"labels":{"croft.dev/tenant":"moving"}}}`)
	f.ready(moving)
}

func namespaceDropped(f *field) {
	moving := tenant("moving", "")
	f.ready(moving)
	f.patch(moving, `{"spec":{"namespaces":["legacy"]}}`)
	f.eventually("access to go", func() string {
		if n := f.bindings("fresh"); n > 0 {
			return fmt.Sprintf("%d bindings", n)
		}
		return ""
	})
	if len(f.policies("fresh")) == 0 {
		f.Error("the walls of a namespace that is retained are gone")
	}
}

// namespaceGiven fails if a namespace that an admin gives to another tenant is deleted
// because its former tenant, which has deletion: Delete, no longer declares it.
func namespaceGiven(f *field) {
	giver := tenant("giver", "apps")
	giver.Spec.Namespaces, giver.Spec.Deletion = []string{"giver", "given"}, v1alpha1.DeletionDelete
	f.create(giver)
	f.ready(giver)
	before := namespace("given")
	if err := f.client.Get(f.Context(), client.ObjectKeyFromObject(before), before); err != nil {
		f.Fatal(err)
	}

	f.patch(namespace("given"), `{"metadata":{"annotations":{"croft.dev/adopt":"taker"}}}`)
	f.patch(giver, `{"spec":{"namespaces":["giver"]}}`)
	f.ready(giver)
	taker := tenant("taker", "apps")
	taker.Spec.Namespaces = []string{"given"}
	f.create(taker)
	f.ready(taker)

	after := namespace("given")
	if err := f.client.Get(f.Context(), client.ObjectKeyFromObject(after), after); err != nil {
		f.Fatal(err)
	}
	if after.UID != before.UID || after.DeletionTimestamp != nil || after.Labels[v1alpha1.TenantLabel] != "taker" {
		f.Errorf("the namespace was %s, and is %s of %q, deleted %v", before.UID, after.UID, after.Labels[v1alpha1.TenantLabel], after.DeletionTimestamp)
	}
	if len(f.policies("given")) == 0 || f.bindings("given") == 0 {
		f.Error("it has no walls, or nobody has access")
	}
	f.delete(giver)
	f.gone(giver)
	f.delete(taker)
	f.gone(taker)
}
