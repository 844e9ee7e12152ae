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

func testNoWriteWhenUnchanged(b *bench) {
	all := []client.Object{b.newNamespace(), b.newDenyPolicy(), b.newQuota("cpu", "pods"), b.newBinding("view")}
	b.applyObjects(apply.Created, all...)
	b.expectUnchanged(all...)
	space := b.newNamespace()
	b.getObject(space)
	if space.Annotations[v1alpha1.CreatedAnnotation] != "true" {
		b.Errorf("annotations = %v, want %s", space.Annotations, v1alpha1.CreatedAnnotation)
	}
}

func testChangedValue(b *bench) {
	b.applyObjects(apply.Created, b.newNamespace(), b.newDenyPolicy())
	b.patchObject(b.newDenyPolicy(), "kubectl-edit", `{"spec":{"policyTypes":["Egress"]}}`)
	changes := b.applyObjects(apply.Configured, b.newDenyPolicy())
	if len(changes[0].RevertedManagers) != 1 || changes[0].RevertedManagers[0] != "kubectl-edit" {
		b.Errorf("undid %v", changes[0].RevertedManagers)
	}
	b.expectUnchanged(b.newNamespace(), b.newDenyPolicy())

	b.patchObject(b.newDenyPolicy(), "curl", `{"metadata":{"labels":{"croft.dev/tenant":"other"}}}`)
	changes = b.applyObjects(apply.Configured, b.newDenyPolicy())
	if len(changes[0].RevertedManagers) != 1 || changes[0].RevertedManagers[0] != "curl" {
		b.Errorf("undid %v", changes[0].RevertedManagers)
	}
	b.expectUnchanged(b.newNamespace(), b.newDenyPolicy())
}

func testAddedRule(b *bench) {
	b.applyObjects(apply.Created, b.newNamespace(), b.newDenyPolicy())
	for _, manager := range []string{"kubectl-edit", "croft"} {
		b.patchObject(b.newDenyPolicy(), manager, `{"metadata":{"annotations":{"note":"mine"}},"spec":{"ingress":[{}]}}`)
		b.applyObjects(apply.Configured, b.newDenyPolicy())
		live := b.newDenyPolicy()
		b.getObject(live)
		if len(live.Spec.Ingress) != 0 {
			b.Errorf("added as %s, ingress = %v", manager, live.Spec.Ingress)
		}
		if live.Annotations["note"] != "mine" {
			b.Error("somebody's annotation was taken away")
		}
		b.expectUnchanged(b.newDenyPolicy())
	}
}

func testKubectlTakeover(b *bench) {
	b.applyObjects(apply.Created, b.newNamespace())
	theirs := b.newDenyPolicy()
	theirs.Spec.Ingress = []networkingv1.NetworkPolicyIngressRule{{}}
	if err := b.client.Create(b.Context(), theirs, client.FieldOwner("kubectl")); err != nil {
		b.Fatal(err)
	}
	b.applyObjects(apply.Configured, b.newDenyPolicy())
	live := b.newDenyPolicy()
	b.getObject(live)
	if len(live.Spec.Ingress) != 0 {
		b.Errorf("ingress = %v", live.Spec.Ingress)
	}
	b.expectUnchanged(b.newDenyPolicy())
}

func testKeptLabel(b *bench) {
	b.applyObjects(apply.Created, b.newNamespace(), b.newDenyPolicy())
	b.patchObject(b.newDenyPolicy(), "helm", `{"metadata":{"labels":{"team":"a"}}}`)
	b.patchObject(b.newNamespace(), "helm", `{"metadata":{"labels":{"istio-injection":"enabled"},"annotations":{"x":"y"}}}`)
	b.expectUnchanged(b.newNamespace(), b.newDenyPolicy())
}

func testStatusWithoutDrift(b *bench) {
	b.applyObjects(apply.Created, b.newNamespace(), b.newQuota("cpu"))
	live := b.newQuota()
	b.getObject(live)
	live.Status.Hard = live.Spec.Hard
	live.Status.Used = corev1.ResourceList{"cpu": resource.MustParse("500m")}
	if err := b.client.Status().Update(b.Context(), live); err != nil {
		b.Fatal(err)
	}
	b.expectUnchanged(b.newQuota("cpu"))
}

func testAbandonedFields(b *bench) {
	space := b.newNamespace()
	space.Labels[v1alpha1.CostCodeLabel] = "org1"
	b.applyObjects(apply.Created, space, b.newQuota("cpu", "pods"))
	b.applyObjects(apply.Configured, b.newNamespace(), b.newQuota("cpu"))
	live, quota := b.newNamespace(), b.newQuota()
	b.getObject(live)
	b.getObject(quota)
	if _, ok := live.Labels[v1alpha1.CostCodeLabel]; ok {
		b.Error("a label that is no longer desired still exists")
	}
	if len(quota.Spec.Hard) != 1 {
		b.Errorf("hard = %v", quota.Spec.Hard)
	}
	b.expectUnchanged(b.newNamespace(), b.newQuota("cpu"))
}

func testChangedRole(b *bench) {
	b.applyObjects(apply.Created, b.newNamespace(), b.newBinding("view"))
	b.applyObjects(apply.Recreated, b.newBinding("edit"))
	b.expectUnchanged(b.newBinding("edit"))

	// A binding that croft did not create is not deleted to change its role.
	theirs := b.newBinding("view")
	theirs.Name, theirs.Labels = "theirs", nil
	if err := b.client.Create(b.Context(), theirs); err != nil {
		b.Fatal(err)
	}
	desired := b.newBinding("edit")
	desired.Name = "theirs"
	if _, err := b.applier.Apply(b.Context(), desired); !apierrors.IsInvalid(err) {
		b.Errorf("err = %v, want Invalid", err)
	}
}

func testDiffWritesNothing(b *bench) {
	diff := func(objects ...client.Object) string {
		b.Helper()
		differences, err := b.applier.Diff(b.Context(), objects...)
		if err != nil {
			b.Fatal(err)
		}
		return differences.String()
	}
	if text := diff(b.newNamespace(), b.newDenyPolicy()); !strings.Contains(text, "+kind: NetworkPolicy\n") {
		b.Errorf("before anything is there:\n%s", text)
	}
	b.applyObjects(apply.Created, b.newNamespace(), b.newDenyPolicy(), b.newQuota("cpu"))
	if text := diff(b.newNamespace(), b.newDenyPolicy(), b.newQuota("cpu")); text != "" {
		b.Errorf("for unchanged objects:\n%s", text)
	}
	b.patchObject(b.newDenyPolicy(), "kubectl-edit", `{"spec":{"ingress":[{}]}}`)
	text := diff(b.newDenyPolicy(), b.newQuota("cpu", "pods"))
	for _, line := range []string{"-  ingress:\n", "-  - {}\n", "+    pods: \"1\"\n"} {
		if !strings.Contains(text, line) {
			b.Errorf("no line %q in:\n%s", line, text)
		}
	}
	live := b.newDenyPolicy()
	b.getObject(live)
	if len(live.Spec.Ingress) != 1 {
		b.Error("the diff changed something")
	}
}
