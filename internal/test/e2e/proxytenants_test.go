package e2e

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
)

// testProxyOwnNamespace fails if users cannot use their roles' rights through the proxy.
func testProxyOwnNamespace(t *testing.T, p *proxiedCluster) {
	pods, err := p.jane.client.CoreV1().Pods(ownNamespace).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(pods.Items) > 0 {
		t.Errorf("jane lists %v: %v", pods, err)
	}

	notes := p.jane.client.CoreV1().ConfigMaps(ownNamespace)
	note := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "note"}, Data: map[string]string{"by": "jane"}}
	if _, err := notes.Create(t.Context(), note, metav1.CreateOptions{}); err != nil {
		t.Error(err)
	}
	applied, err := notes.Apply(t.Context(), applycorev1.ConfigMap("note", ownNamespace).WithData(map[string]string{"applied": "yes"}),
		metav1.ApplyOptions{FieldManager: "test"})
	if err != nil || applied.Data["by"] != "jane" || applied.Data["applied"] != "yes" {
		t.Errorf("server-side apply returned %v: %v", applied, err)
	}
	if err := notes.Delete(t.Context(), "note", metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}

	const manifest = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: letter}\ndata: {to: joe}\n"
	p.runKubectlAs(t, p.jane, manifest, "apply", "--server-side", "-n", ownNamespace, "-f", "-").expectExit(t, 0)
	shown := p.runKubectlAs(t, p.jane, "", "get", "configmaps", "-n", ownNamespace).expectExit(t, 0).stdout
	if !slices.Contains(cutColumns(shown, 2), "letter 1") {
		t.Errorf("kubectl shows jane\n%s", shown)
	}
	p.runKubectlAs(t, p.jane, "", "delete", "configmap", "letter", "-n", ownNamespace).expectExit(t, 0) // watches until the object is deleted
	if can := p.runKubectlAs(t, p.jane, "", "auth", "can-i", "create", "pods", "-n", ownNamespace).expectExit(t, 0).stdout; can != "yes\n" {
		t.Errorf("kubectl auth can-i create pods prints %s", can)
	}
}

// testProxyOtherNamespace fails if users can do more through the proxy than their roles allow.
func testProxyOtherNamespace(t *testing.T, p *proxiedCluster) {
	expectNoAccess(t, p.jane, otherNamespace)
	expectNoAccess(t, p.jane, metav1.NamespaceSystem)
	o := p.runKubectlAs(t, p.jane, "", "get", "pods", "-n", otherNamespace).expectExit(t, 1)
	if !strings.Contains(o.stderr, `User "oidc:jane" cannot list resource "pods"`) {
		t.Errorf("kubectl does not show the API server's message: %s", o)
	}
}

// testProxyWithoutRole fails if an authenticated user without a role has access to a namespace.
func testProxyWithoutRole(t *testing.T, p *proxiedCluster) {
	for _, namespace := range append([]string{otherNamespace}, ownNamespaces...) {
		expectNoAccess(t, p.joe, namespace)
	}
}

// expectNoAccess fails if a user has access to a namespace without a role in it.
func expectNoAccess(t testing.TB, u testUser, namespace string) {
	t.Helper()
	core := u.client.CoreV1()
	_, err := core.Namespaces().Get(t.Context(), namespace, metav1.GetOptions{})
	expectForbidden(t, "getting namespace "+namespace, err)
	_, err = core.Pods(namespace).List(t.Context(), metav1.ListOptions{})
	expectForbidden(t, "listing pods in "+namespace, err)
	_, err = core.Secrets(namespace).Watch(t.Context(), metav1.ListOptions{})
	expectForbidden(t, "watching Secrets in "+namespace, err)
	_, err = core.ConfigMaps(namespace).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "note"}}, metav1.CreateOptions{})
	expectForbidden(t, "creating a ConfigMap in "+namespace, err)
}
