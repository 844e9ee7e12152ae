package e2e

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"croft.dev/croft/internal/walls/wall/network"
)

// testWithoutOperator fails if a wall depends on the operator, as it would with a webhook of
// croft's: while the operator is down, attacks would succeed or legitimate requests would be
// refused.
func testWithoutOperator(t *testing.T, c *twoTenants) {
	if err := c.Stop("croft"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Start("croft"); err != nil {
			t.Errorf("the operator does not come back: %v", err)
		}
	})
	a := teams[0]
	member := c.newMemberClient(t, a.group)

	t.Run("pods are placed", func(t *testing.T) {
		pod := newNginxPod(a.tenant, "late")
		createObjects(t, member, pod)
		t.Cleanup(func() { c.deleteObjects(t, pod) })
		expectPlacement(t, pod, c.estate.Platform.NodePoolKey, a.pool)
		c.expectPool(t, c.estate, c.awaitRunning(t, pod), a.pool)
	})

	t.Run("attacks are refused", func(t *testing.T) {
		expectRefusal(t, "a pod that tolerates everything",
			member.Create(t.Context(), newNginxPod(a.tenant, "stowaway", tolerateEverything)), byPlacement)
		expectRefusal(t, "a NetworkPolicy that lets everybody in",
			member.Create(t.Context(), newOpenPolicy(a.tenant)), byFloor)
		isolation := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: a.tenant, Name: network.IsolationPolicy}}
		expectRefusal(t, "deleting croft's NetworkPolicy",
			member.Delete(t.Context(), isolation), byProtection)
	})

	t.Run("nothing else is blocked", func(t *testing.T) {
		bystander := newNginxPod(metav1.NamespaceDefault, "tolerant", tolerateEverything)
		bystander.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.org/never"}}
		createObjects(t, c.admin, bystander)
		t.Cleanup(func() { c.deleteObjects(t, bystander) })

		note := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: a.tenant, Name: "note"}}
		createObjects(t, member, note)
		note.Data = map[string]string{"note": "written with the operator down"}
		if err := member.Update(t.Context(), note); err != nil {
			t.Error(err)
		}
		if err := member.Delete(t.Context(), note); err != nil {
			t.Error(err)
		}
	})

	t.Run("it is started again", func(t *testing.T) {
		c.resumeOperator(t)
		c.applyFile(t, c.file) // waits until everything is Ready
	})
}

// newOpenPolicy returns a NetworkPolicy that allows all ingress.
func newOpenPolicy(namespace string) *networkingv1.NetworkPolicy {
	return &networkingv1.NetworkPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "open-house"},
		Spec:       networkingv1.NetworkPolicySpec{Ingress: []networkingv1.NetworkPolicyIngressRule{{}}},
	}
}
