package cli_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/operate/apply"
)

// testInstallCheck expects croft install --check to write nothing, and to name the
// obstacles to an installation.
func testInstallCheck(t *testing.T, d *declaringCluster) {
	t.Helper()
	check := func(want int, args string, texts ...string) {
		t.Helper()
		status, stdout, stderr := d.runCroft(t, "", "install --check "+args)
		for _, text := range texts {
			if status != want || !strings.Contains(strings.Join(strings.Fields(stdout+stderr), " "), text) {
				t.Errorf("install --check %s: exit status %d, want %d and %q:\n%s%s", args, status, want, text, stdout, stderr)
			}
		}
	}
	check(0, "--image croft:test --agent", "kubernetes good", "admission good", "karpenter good NodePool", "rights good", "objects good", "dry run good", "croft good not installed yet")
	viewer := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "croft-viewer"}}
	if err := d.admin.Create(t.Context(), viewer); err != nil {
		t.Fatal(err)
	}
	check(1, "", "objects problem existing objects that croft did not create would be overwritten: ClusterRole croft-viewer", "1 problem to fix")
	if err := d.admin.Delete(t.Context(), viewer); err != nil {
		t.Fatal(err)
	}
	check(1, "--as nobody", "rights problem you may not", "create clusterroles.rbac.authorization.k8s.io")
	check(2, "--context nowhere", "no cluster is configured")
	var kinds apiextensionsv1.CustomResourceDefinitionList
	if err := d.admin.List(t.Context(), &kinds, client.MatchingLabels{v1alpha1.ManagedByLabel: v1alpha1.ManagedBy}); err != nil || len(kinds.Items) > 0 {
		t.Errorf("%v: %d kinds were installed", err, len(kinds.Items))
	}
}

// testUninstall expects uninstall to delete the operator's rights, and to keep the declared
// objects and their walls. It expects uninstall --all to fail while tenants exist that only
// an operator can finalize, and to leave no object of croft once they are deleted.
func testUninstall(t *testing.T, d *declaringCluster) {
	role := func(name string) error {
		return d.admin.Get(t.Context(), client.ObjectKey{Name: name}, &rbacv1.ClusterRole{})
	}
	status, _, stderr := d.runCroft(t, "no\n", "uninstall")
	if status != 1 || !strings.Contains(stderr, "Staying:\n  - 1 tenant, 1 pool and their walls") || !strings.Contains(stderr, "nothing was removed") || role("croft") != nil {
		t.Errorf("exit status %d, %v: %s", status, role("croft"), stderr)
	}

	// install deletes this object of an older version.
	old := &rbacv1.ClusterRole{TypeMeta: metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole"},
		ObjectMeta: metav1.ObjectMeta{Name: "croft-older", Labels: map[string]string{v1alpha1.ManagedByLabel: v1alpha1.ManagedBy, apply.NameLabel: v1alpha1.ManagedBy}}}
	foreign := old.DeepCopy()
	foreign.Name, foreign.TypeMeta = "others", metav1.TypeMeta{}
	if _, err := apply.New(d.admin).Apply(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	if err := d.admin.Create(t.Context(), foreign); err != nil {
		t.Fatal(err)
	}
	if _, stdout, stderr := d.runCroft(t, "", "install --dry-run"); !strings.Contains(stdout, "--- ClusterRole croft-older (live)") || !strings.Contains(stderr, "and 1 deleted; nothing was written") {
		t.Errorf("a dry run does not show the deletion: %s%s", stdout, stderr)
	}
	if status, stdout, stderr := d.runCroft(t, "", "install"); status != 0 || !strings.Contains(stdout, "/croft-older deleted") || !apierrors.IsNotFound(role("croft-older")) || role("others") != nil {
		t.Errorf("exit status %d: %s%s", status, stdout, stderr)
	}

	if status, stdout, stderr := d.runCroft(t, "", "uninstall --yes"); status != 0 || !strings.Contains(stdout, "clusterrole.rbac.authorization.k8s.io/croft deleted") {
		t.Errorf("exit status %d: %s%s", status, stdout, stderr)
	}
	if !apierrors.IsNotFound(role("croft")) || role("croft-viewer") != nil || d.admin.Get(t.Context(), client.ObjectKey{Name: "shop"}, &v1alpha1.Tenant{}) != nil {
		t.Error("the operator's rights stay, or the walls or the tenant do not")
	}
	if status, _, stderr := d.runCroft(t, "", "uninstall --all --yes"); status != 1 || !strings.Contains(stderr, "the operator has no rights") {
		t.Errorf("tenants without an operator: exit status %d: %s", status, stderr)
	}

	for _, o := range []client.Object{&v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}, &v1alpha1.Pool{ObjectMeta: metav1.ObjectMeta{Name: "apps"}}} {
		if err := d.admin.Delete(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	if status, stdout, stderr := d.runCroft(t, "", "uninstall --all --yes"); status != 0 {
		t.Fatalf("exit status %d: %s%s", status, stdout, stderr)
	}
	var kinds apiextensionsv1.CustomResourceDefinitionList
	var roles rbacv1.ClusterRoleList
	var namespaces corev1.NamespaceList
	for _, list := range []client.ObjectList{&kinds, &roles, &namespaces} {
		if err := d.admin.List(t.Context(), list, client.MatchingLabels{v1alpha1.ManagedByLabel: v1alpha1.ManagedBy}); err != nil {
			t.Fatal(err)
		}
	}
	for _, n := range namespaces.Items {
		if n.DeletionTimestamp == nil && n.Name != "shop" {
			t.Errorf("namespace %s stays", n.Name)
		}
	}
	if len(kinds.Items) != 0 || len(roles.Items) != 1 {
		t.Errorf("%d kinds and %d roles stay, want the one of others", len(kinds.Items), len(roles.Items))
	}
	var shop corev1.Namespace
	if err := d.admin.Get(t.Context(), client.ObjectKey{Name: "shop"}, &shop); err != nil || shop.Labels[v1alpha1.TenantLabel] != "" {
		t.Errorf("the tenant's namespace: %v, labels %v", err, shop.Labels)
	}
}
