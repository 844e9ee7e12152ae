package cli_test

import (
	"encoding/json"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/declare/manifest"
	"croft.dev/croft/internal/operate/apply"
	"croft.dev/croft/internal/walls/wall"
)

// replaceParts replaces parts of a text, and fails if a part is missing.
func replaceParts(t *testing.T, text string, pairs ...string) string {
	t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		changed := strings.Replace(text, pairs[i], pairs[i+1], 1)
		if changed == text {
			t.Fatalf("there is no %q in:\n%s", pairs[i], text)
		}
		text = changed
	}
	return text
}

// applyPoolObjects writes the objects of a file's pools in the operator's place.
func (d *declaringCluster) applyPoolObjects(t *testing.T, file string) {
	t.Helper()
	declared, problems := manifest.Parse("croft.yaml", []byte(file))
	e, more := estate.Build(declared)
	if len(problems)+len(more) > 0 {
		t.Fatal(problems, more)
	}
	for _, pool := range e.Pools {
		if _, err := apply.New(d.admin).Apply(t.Context(), wall.PoolObjects(&e.Platform, pool)...); err != nil {
			t.Fatal(err)
		}
	}
}

// testDiffDeletions expects diff to show objects of the platform that are deleted, and the
// consequences of all changes.
func testDiffDeletions(t *testing.T, d *declaringCluster) {
	file := replaceParts(t, estateOfTwo, "nodeClass: {kwok: {}}", "nodeClass: {kwok: {}}, proxy: {}, auditors: [ci]")
	if status, _, stderr := d.runCroft(t, "", "apply --wait=false -f "+writeConfig(t, file)); status != 0 {
		t.Fatalf("exit status %d: %s", status, stderr)
	}
	if status, _, stderr := d.runCroft(t, "", "install"); status != 0 {
		t.Fatalf("exit status %d: %s", status, stderr)
	}
	d.applyPoolObjects(t, file)
	claim := &karpenterv1.NodeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "apps-1", Labels: map[string]string{karpenterv1.NodePoolLabelKey: "apps", corev1.LabelOSStable: "linux", corev1.LabelInstanceTypeStable: "t3a.large"}},
		Spec: karpenterv1.NodeClaimSpec{
			NodeClassRef: &karpenterv1.NodeClassReference{Group: "karpenter.kwok.sh", Kind: "KWOKNodeClass", Name: "apps"},
			Requirements: []karpenterv1.NodeSelectorRequirementWithMinValues{{Key: corev1.LabelOSStable, Operator: corev1.NodeSelectorOpExists}},
		},
	}
	if err := d.admin.Create(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = client.IgnoreNotFound(d.admin.Delete(t.Context(), claim))
		d.runCroft(t, "", "apply --wait=false -f "+writeConfig(t, estateOfTwo))
	}()

	changed := replaceParts(t, estateOfTwo, "instanceTypes: [t3a.large]}", "instanceTypes: [t3a.large]}, costCode: org1", "[{group: shoppers, role: operator}]", "[]")
	status, stdout, stderr := d.runCroft(t, "", "diff -f "+writeConfig(t, changed))
	if status != 1 {
		t.Errorf("exit status %d: %s", status, stderr)
	}
	for _, want := range []string{
		"--- ClusterRole croft-proxy (live)", "--- ClusterRoleBinding croft-proxy (live)", "-kind: ClusterRoleBinding", "--- ClusterRoleBinding croft-auditor (live)",
		"objects to update, 3 objects to delete", "replaces 1 node of pool apps (drift: costCode", "lose the access to tenant shop: group shoppers",
		"croft proxy loses its rights", "group ci is no longer among the platform auditors",
	} {
		if !strings.Contains(strings.ReplaceAll(stdout, "loses the", "lose the"), want) {
			t.Errorf("diff does not show %q:\n%s", want, stdout[max(0, len(stdout)-3000):])
		}
	}
	_, stdout, _ = d.runCroft(t, "", "diff -o json -f "+writeConfig(t, changed))
	var report struct {
		Changes      []struct{ Kind, Name, Action string }
		Consequences []struct{ Kind, Object, Message string }
	}
	if err := json.Unmarshal([]byte(stdout), &report); err != nil || len(report.Consequences) != 4 {
		t.Errorf("%v: %+v", err, report.Consequences)
	}
	// A difference without a consequence prints only the summary.
	_, stdout, _ = d.runCroft(t, "", "diff -f "+writeConfig(t, replaceParts(t, file, `pods: "10"`, `pods: "12"`)))
	if !strings.Contains(stdout, " to delete\n") || strings.Contains(stdout, "  - replaces") {
		t.Errorf("diff shows:\n%s", stdout)
	}
	// A refusal is a failure, and not a difference.
	status, _, stderr = d.runCroft(t, "", "diff --as nobody -f "+writeConfig(t, changed))
	if status != 2 || !strings.Contains(stderr, "forbidden") {
		t.Errorf("exit status %d: %s", status, stderr)
	}
}
