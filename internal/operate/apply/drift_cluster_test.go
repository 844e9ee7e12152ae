package apply_test

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/operate/apply"
)

func standsUnwritten(b *bench) {
	all := []client.Object{b.space(), b.deny(), b.quota("cpu", "pods"), b.binding("view")}
	b.apply(apply.Created, all...)
	b.settled(all...)
	space := b.space()
	b.get(space)
	if space.Annotations[v1alpha1.CreatedAnnotation] != "true" {
		b.Errorf("annotations = %v, want %s", space.Annotations, v1alpha1.CreatedAnnotation)
	}
}

func valuePutBack(b *bench) {
	b.apply(apply.Created, b.space(), b.deny())
	b.patch(b.deny(), "kubectl-edit", `{"spec":{"policyTypes":["Egress"]}}`)
	changes := b.apply(apply.Configured, b.deny())
	if len(changes[0].RevertedManagers) != 1 || changes[0].RevertedManagers[0] != "kubectl-edit" {
		b.Errorf("undid %v", changes[0].RevertedManagers)
	}
	b.settled(b.space(), b.deny())

	b.patch(b.deny(), "curl", `{"metadata":{"labels":{"croft.dev/tenant":"other"}}}`)
	changes = b.apply(apply.Configured, b.deny())
	if len(changes[0].RevertedManagers) != 1 || changes[0].RevertedManagers[0] != "curl" {
		b.Errorf("undid %v", changes[0].RevertedManagers)
	}
	b.settled(b.space(), b.deny())
}

func ruleTakenAway(b *bench) {
	b.apply(apply.Created, b.space(), b.deny())
	for _, manager := range []string{"kubectl-edit", "croft"} {
		b.patch(b.deny(), manager, `{"metadata":{"annotations":{"note":"mine"}},"spec":{"ingress":[{}]}}`)
		b.apply(apply.Configured, b.deny())
		live := b.deny()
		b.get(live)
		if len(live.Spec.Ingress) != 0 {
			b.Errorf("added as %s, ingress = %v", manager, live.Spec.Ingress)
		}
		if live.Annotations["note"] != "mine" {
			b.Error("somebody's annotation was taken away")
		}
		b.settled(b.deny())
	}
}

func takenOverFromKubectl(b *bench) {
	b.apply(apply.Created, b.space())
	theirs := b.deny()
	theirs.Spec.Ingress = []networkingv1.NetworkPolicyIngressRule{{}}
	if err := b.client.Create(b.Context(), theirs, client.FieldOwner("kubectl")); err != nil {
		b.Fatal(err)
	}
	b.apply(apply.Configured, b.deny())
	live := b.deny()
	b.get(live)
	if len(live.Spec.Ingress) != 0 {
		b.Errorf("ingress = %v", live.Spec.Ingress)
	}
	b.settled(b.deny())
}

func labelLeft(b *bench) {
	b.apply(apply.Created, b.space(), b.deny())
	b.patch(b.deny(), "helm", `{"metadata":{"labels":{"team":"a"}}}`)
	b.patch(b.space(), "helm", `{"metadata":{"labels":{"istio-injection":"enabled"},"annotations":{"x":"y"}}}`)
	b.settled(b.space(), b.deny())
}

func statusIsNoDrift(b *bench) {
	b.apply(apply.Created, b.space(), b.quota("cpu"))
	live := b.quota()
	b.get(live)
	live.Status.Hard = live.Spec.Hard
	live.Status.Used = corev1.ResourceList{"cpu": resource.MustParse("500m")}
	if err := b.client.Status().Update(b.Context(), live); err != nil {
		b.Fatal(err)
	}
	b.settled(b.quota("cpu"))
}

func abandonedGoes(b *bench) {
	space := b.space()
	space.Labels[v1alpha1.CostCodeLabel] = "org1"
	b.apply(apply.Created, space, b.quota("cpu", "pods"))
	b.apply(apply.Configured, b.space(), b.quota("cpu"))
	live, quota := b.space(), b.quota()
	b.get(live)
	b.get(quota)
	if _, ok := live.Labels[v1alpha1.CostCodeLabel]; ok {
		b.Error("a label that is wanted no longer is still there")
	}
	if len(quota.Spec.Hard) != 1 {
		b.Errorf("hard = %v", quota.Spec.Hard)
	}
	b.settled(b.space(), b.quota("cpu"))
}

func roleChanged(b *bench) {
	b.apply(apply.Created, b.space(), b.binding("view"))
	b.apply(apply.Recreated, b.binding("edit"))
	b.settled(b.binding("edit"))

	// A binding that croft did not create is not deleted to change its role.
	theirs := b.binding("view")
	theirs.Name, theirs.Labels = "theirs", nil
	if err := b.client.Create(b.Context(), theirs); err != nil {
		b.Fatal(err)
	}
	wanted := b.binding("edit")
	wanted.Name = "theirs"
	if _, err := b.applier.Apply(b.Context(), wanted); !apierrors.IsInvalid(err) {
		b.Errorf("err = %v, want Invalid", err)
	}
}

func diffChangesNothing(b *bench) {
	diff := func(objects ...client.Object) string {
		b.Helper()
		differences, err := b.applier.Diff(b.Context(), objects...)
		if err != nil {
			b.Fatal(err)
		}
		return differences.String()
	}
	if text := diff(b.space(), b.deny()); !strings.Contains(text, "+kind: NetworkPolicy\n") {
		b.Errorf("before anything is there:\n%s", text)
	}
	b.apply(apply.Created, b.space(), b.deny(), b.quota("cpu"))
	if text := diff(b.space(), b.deny(), b.quota("cpu")); text != "" {
		b.Errorf("of what stands:\n%s", text)
	}
	b.patch(b.deny(), "kubectl-edit", `{"spec":{"ingress":[{}]}}`)
	text := diff(b.deny(), b.quota("cpu", "pods"))
	for _, line := range []string{"-  ingress:\n", "-  - {}\n", "+    pods: \"1\"\n"} {
		if !strings.Contains(text, line) {
			b.Errorf("no line %q in:\n%s", line, text)
		}
	}
	live := b.deny()
	b.get(live)
	if len(live.Spec.Ingress) != 1 {
		b.Error("the diff changed something")
	}
}
