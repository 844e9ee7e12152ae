package cli_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
)

// testApplyConflicts expects apply to refuse fields that other field managers own, to
// overwrite them with --force, and to need no --force for other fields.
func testApplyConflicts(t *testing.T, d *declaringCluster) {
	file := writeConfig(t, estateOfTwo)
	apply := func(want int, args, text string) {
		t.Helper()
		status, stdout, stderr := d.runCroft(t, "", "apply --wait=false -f "+args)
		if status != want || !strings.Contains(stdout+stderr, text) {
			t.Errorf("apply %s: exit status %d, want %d and %q: %s%s", args, status, want, text, stdout, stderr)
		}
	}
	shop := &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}
	patch := func(manager, content string) {
		t.Helper()
		if err := d.admin.Patch(t.Context(), shop.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(content)), client.FieldOwner(manager)); err != nil {
			t.Fatal(err)
		}
	}
	pods := func() string {
		t.Helper()
		if err := d.admin.Get(t.Context(), client.ObjectKeyFromObject(shop), shop); err != nil {
			t.Fatal(err)
		}
		return shop.Spec.Quota.Pods().String()
	}

	apply(0, file, "tenant.croft.dev/shop unchanged")
	patch("kubectl-edit", `{"spec":{"quota":{"pods":"7"}}}`)
	apply(1, file, "nothing was written: this would overwrite\n  Tenant shop: spec.quota.pods, set by kubectl-edit\n")
	if got := pods(); got != "7" {
		t.Errorf("%s pods: something was written", got)
	}
	if _, stdout, _ := d.runCroft(t, "", "diff -f "+file); !strings.Contains(stdout, "  - croft apply needs --force for Tenant shop: spec.quota.pods, set by kubectl-edit\n") {
		t.Errorf("diff shows:\n%s", stdout)
	}
	// The file now has kubectl's value, so that no value is lost.
	apply(0, writeConfig(t, replaceParts(t, estateOfTwo, `pods: "10"`, `pods: "7"`)), "tenant.croft.dev/shop")
	patch("kubectl-edit", `{"spec":{"quota":{"pods":"8"}}}`)
	apply(0, file+" --force", "overwriting Tenant shop: spec.quota.pods, set by kubectl-edit\n")
	if got := pods(); got != "10" {
		t.Errorf("%s pods after --force", got)
	}
	apply(0, file, "tenant.croft.dev/shop unchanged")
	// This field is not in the file.
	patch("kubectl-edit", `{"spec":{"costCode":"org1"}}`)
	apply(1, file, "Tenant shop: spec.costCode, set by kubectl-edit")
	patch("kubectl-edit", `{"spec":{"costCode":null}}`)
	apply(0, file, "tenant.croft.dev/shop")

	testHelmOwnedTenant(t, d, apply)
	// These are croft's own writes with another operation, such as the writes of croft move
	// --undo.
	patch(v1alpha1.ManagedBy, `{"spec":{"quota":{"pods":"9"}}}`)
	apply(0, file, "tenant.croft.dev/shop configured")
}

// testHelmOwnedTenant tests a tenant that Helm created.
func testHelmOwnedTenant(t *testing.T, d *declaringCluster, apply func(want int, args, text string)) {
	helms := &v1alpha1.Tenant{
		ObjectMeta: metav1.ObjectMeta{Name: "bank", Annotations: map[string]string{"meta.helm.sh/release-name": "croft", "meta.helm.sh/release-namespace": "platform"}},
		Spec:       v1alpha1.TenantSpec{Pool: "apps", Quota: corev1.ResourceList{"pods": resource.MustParse("5")}},
	}
	if err := d.admin.Create(t.Context(), helms, client.FieldOwner("helm")); err != nil {
		t.Fatal(err)
	}
	owned := func() bool {
		t.Helper()
		if err := d.admin.Get(t.Context(), client.ObjectKeyFromObject(helms), helms); err != nil {
			t.Fatal(err)
		}
		for _, entry := range helms.ManagedFields {
			if entry.Manager == v1alpha1.ManagedBy && entry.Subresource == "" {
				return true
			}
		}
		return false
	}
	same := estateOfTwo + "  bank: {pool: apps, quota: {pods: \"5\"}}\n"
	apply(0, writeConfig(t, same), "tenant.croft.dev/bank unchanged")
	if owned() {
		t.Error("an apply without a change has taken fields from Helm")
	}
	more := writeConfig(t, same[:len(same)-2]+", costCode: org1}\n")
	apply(1, more, "Tenant bank: spec.costCode, set by Helm (release croft in namespace platform)")
	apply(1, writeConfig(t, estateOfTwo)+" --prune --yes", "Tenant bank, which Helm (release croft in namespace platform) manages")
	if owned() {
		t.Error("a refused apply has written")
	}
	apply(0, more+" --force", "tenant.croft.dev/bank configured")
	apply(0, more, "tenant.croft.dev/bank unchanged")
	apply(0, writeConfig(t, replaceParts(t, same, `pods: "5"`, `pods: "6"`)), "tenant.croft.dev/bank configured")
	if err := d.admin.Delete(t.Context(), helms); err != nil {
		t.Fatal(err)
	}
}
