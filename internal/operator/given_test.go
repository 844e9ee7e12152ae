package operator_test

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
)

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
