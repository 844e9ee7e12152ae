package netpol_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/internal/declare/scheme"
	"croft.dev/croft/internal/observe/netpol"
	"croft.dev/croft/internal/rules/attack"
	"croft.dev/croft/internal/test/sandbox"
)

// TestTakeOmitsTerminatingNamespaces fails if Take returns an empty namespace that is being
// deleted: its policies may already be deleted. A namespace with remaining pods is returned.
func TestTakeOmitsTerminatingNamespaces(t *testing.T) {
	sandbox.EndToEnd(t)
	cluster := sandbox.Start(t, sandbox.Options{Components: sandbox.APIOnly}) // no controller deletes the namespaces
	c, err := client.New(cluster.Config, client.Options{Scheme: scheme.New()})
	if err != nil {
		t.Fatal(err)
	}
	create := func(o client.Object) {
		t.Helper()
		if err := c.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"stays", "goes", "goes-with-a-pod"} {
		create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
		create(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "default"}})
	}
	create(attack.NewPod("goes-with-a-pod", "late"))
	for _, name := range []string{"goes", "goes-with-a-pod"} {
		if err := c.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
			t.Fatal(err)
		}
	}
	seen, err := netpol.TakeSnapshot(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"stays": true, "goes": false, "goes-with-a-pod": true} {
		if got := slices.ContainsFunc(seen.Namespaces, func(n corev1.Namespace) bool { return n.Name == name }); got != want {
			t.Errorf("%s is judged: %t, want %t", name, got, want)
		}
	}
}
