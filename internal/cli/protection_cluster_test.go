package cli_test

import (
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/operate/install"
	"croft.dev/croft/internal/rules/attack"
)

// testTenantProtection expects the API server and the commands to keep a protected tenant, for an
// administrator of the cluster too, and to delete it after a change of its own ended the protection.
func testTenantProtection(t *testing.T, d *declaringCluster) {
	file := estateOfTwo + "  bank: {pool: apps, namespaces: [bank, bank-ci], protect: true}\n"
	if status, _, stderr := d.runCroft(t, "", "apply --wait=false -f "+writeConfig(t, file)); status != 0 {
		t.Fatalf("exit status %d: %s", status, stderr)
	}
	bank := &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "bank"}}
	patch := func(spec string) error {
		return d.admin.Patch(t.Context(), bank.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"spec":`+spec+`}`)))
	}
	for name, refused := range map[string]struct {
		err  error
		rule string
	}{
		"a deletion":                          {d.admin.Delete(t.Context(), bank.DeepCopy()), "protected"},
		"a deletion without waiting":          {d.admin.Delete(t.Context(), bank.DeepCopy(), client.GracePeriodSeconds(0)), "protected"},
		"a deletion of all tenants":           {d.admin.DeleteAllOf(t.Context(), &v1alpha1.Tenant{}, client.MatchingFields{"metadata.name": "bank"}), "protected"},
		"a namespace less":                    {patch(`{"namespaces":["bank"]}`), "protected-namespaces"},
		"a namespace less, and no protection": {patch(`{"namespaces":["bank"],"protect":false}`), "protected-namespaces"},
	} {
		if refused.err == nil || !attack.ByPolicy(install.TenantsPolicy, refused.rule).IsRefusal(refused.err) {
			t.Errorf("%s: %v", name, refused.err)
		}
	}
	for line, want := range map[string]string{
		"apply --prune --yes -f " + writeConfig(t, replaceParts(t, estateOfTwo, `"10"`, `"14"`)): "in the cluster, not in this file: Tenant/bank: spec.protect: ",
		"apply -f " + writeConfig(t, replaceParts(t, file, "[bank, bank-ci]", "[bank]")):         "tenants.bank.namespaces: the tenant is protected",
		"delete tenant bank --yes": "spec.protect protects from deletion: tenant bank",
		"uninstall --all --yes":    "spec.protect protects from deletion: tenant bank",
	} {
		status, stdout, stderr := d.runCroft(t, "", line)
		if status != 2 || !strings.Contains(stderr, want) || strings.Count(stderr, "\n") != 1 || stdout != "" {
			t.Errorf("%s: exit status %d: %s%s", line, status, stdout, stderr)
		}
	}
	var shop v1alpha1.Tenant
	if err := d.admin.Get(t.Context(), client.ObjectKey{Name: "shop"}, &shop); err != nil || shop.Spec.Quota.Pods().String() != "10" {
		t.Errorf("a refused apply changed tenant shop: %v, %v", err, shop.Spec.Quota)
	}
	status, stdout, stderr := d.runCroft(t, "", "diff --prune -f "+writeConfig(t, estateOfTwo))
	if status != 1 || !strings.Contains(stdout, "croft apply refuses the change of tenant bank: ") {
		t.Errorf("exit status %d: %s%s", status, stdout, stderr)
	}

	if err := patch(`{"protect":false}`); err != nil {
		t.Fatal(err)
	}
	if status, _, stderr := d.runCroft(t, "", "apply --prune --yes --wait=false -f "+writeConfig(t, estateOfTwo)); status != 0 {
		t.Errorf("exit status %d: %s", status, stderr)
	}
	if err := d.admin.Get(t.Context(), client.ObjectKeyFromObject(bank), bank); !apierrors.IsNotFound(err) {
		t.Errorf("the tenant still exists: %v", err)
	}
}
