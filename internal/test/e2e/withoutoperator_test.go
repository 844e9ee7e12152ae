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
	member := c.member(t, a.group)

	t.Run("pods are placed", func(t *testing.T) {
		pod := nginx(a.tenant, "late")
		create(t, member, pod)
		t.Cleanup(func() { c.remove(t, pod) })
		isPlaced(t, pod, c.estate.Platform.NodePoolKey, a.pool)
		c.runsOn(t, c.estate, c.runs(t, pod), a.pool)
	})

	t.Run("attacks bounce", func(t *testing.T) {
		isRefused(t, "a pod that tolerates everything",
			member.Create(t.Context(), nginx(a.tenant, "stowaway", tolerateEverything)), byPlacement)
		isRefused(t, "a NetworkPolicy that lets everybody in",
			member.Create(t.Context(), openHouse(a.tenant)), byFloor)
		isolation := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: a.tenant, Name: network.IsolationPolicy}}
		isRefused(t, "deleting croft's NetworkPolicy",
			member.Delete(t.Context(), isolation), byProtection)
	})

	t.Run("nothing else is blocked", func(t *testing.T) {
		bystander := nginx(metav1.NamespaceDefault, "tolerant", tolerateEverything)
		bystander.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.org/never"}}
		create(t, c.admin, bystander)
		t.Cleanup(func() { c.remove(t, bystander) })

		note := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: a.tenant, Name: "note"}}
		create(t, member, note)
		note.Data = map[string]string{"note": "written with the operator down"}
		if err := member.Update(t.Context(), note); err != nil {
			t.Error(err)
		}
		if err := member.Delete(t.Context(), note); err != nil {
			t.Error(err)
		}
	})

	t.Run("it is started again", func(t *testing.T) {
		c.resume(t)
		c.apply(t, c.file) // waits until everything is Ready
	})
}

// openHouse returns a NetworkPolicy that allows all ingress.
func openHouse(namespace string) *networkingv1.NetworkPolicy {
	return &networkingv1.NetworkPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "open-house"},
		Spec:       networkingv1.NetworkPolicySpec{Ingress: []networkingv1.NetworkPolicyIngressRule{{}}},
	}
}
