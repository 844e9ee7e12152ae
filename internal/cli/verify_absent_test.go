package cli_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/declare/manifest"
	"croft.dev/croft/internal/operate/apply"
	"croft.dev/croft/internal/rules/admissionpolicy"
	"croft.dev/croft/internal/walls/wall"
)

// testVerifyWithoutWalls expects verify to stop with one line before any attack if no operator
// has built the walls, and to run the attacks if only one object of the walls is missing.
func testVerifyWithoutWalls(t *testing.T, d *declaringCluster) {
	declaration, problems := manifest.Parse("croft.yaml", []byte(estateOfTwo))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	e, problems := estate.Build(declaration)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	file := writeConfig(t, estateOfTwo)
	policies := slices.DeleteFunc(wall.PlatformObjects(&e.Platform), func(o client.Object) bool {
		return o.GetObjectKind().GroupVersionKind().Group != admissionv1.GroupName
	})
	for _, o := range policies { // `croft install` wrote them
		if err := d.admin.Delete(t.Context(), o.DeepCopyObject().(client.Object)); err != nil {
			t.Fatal(err)
		}
	}
	stops := func(line string, texts ...string) {
		t.Helper()
		started := time.Now()
		status, stdout, stderr := d.runCroft(t, "", line)
		if took := time.Since(started); took > 20*time.Second || status != 1 || stdout != "" || strings.Count(stderr, "\n") != 1 {
			t.Errorf("croft %s: exit status %d after %s:\n%s%s", line, status, took.Round(time.Second), stdout, stderr)
		}
		for _, text := range append(texts, "nothing was tried") {
			if !strings.Contains(stderr, text) {
				t.Errorf("croft %s: it does not print %q: %s", line, text, stderr)
			}
		}
	}
	stops("verify", "objects of the kind ValidatingAdmissionPolicy", "no operator has run yet", "croft operator")
	stops("verify -o json --wall nodes", "objects of the kind ValidatingAdmissionPolicy")
	stops("verify --tenant shop", "objects of the kind ValidatingAdmissionPolicy")
	stops("certificate --tenant shop", "objects of the kind ValidatingAdmissionPolicy")
	stops("verify -f "+file, "objects of the kind ValidatingAdmissionPolicy", "croft render")
	var namespaces corev1.NamespaceList
	if err := d.admin.List(t.Context(), &namespaces, client.HasLabels{v1alpha1.ScratchLabel}); err != nil || len(namespaces.Items) > 0 {
		t.Errorf("%v: it made %d scratch namespaces", err, len(namespaces.Items))
	}

	stops("verify --record", "objects of the kind ValidatingAdmissionPolicy")
	var platform v1alpha1.Platform
	if err := d.admin.Get(t.Context(), client.ObjectKey{Name: v1alpha1.PlatformName}, &platform); err != nil {
		t.Fatal(err)
	}
	if v := platform.Status.Verify; v == nil || v.Breached != 1 || v.Held != 0 {
		t.Errorf("it recorded %+v", v)
	}

	if _, err := apply.New(d.admin).Apply(t.Context(), policies...); err != nil {
		t.Fatal(err)
	}
	stops("verify --tenant shop", "tenant shop has no namespace in the cluster", "croft operator")
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: admissionpolicy.PodsPolicy}}
	if err := d.admin.Delete(t.Context(), binding); err != nil {
		t.Fatal(err)
	}
	for _, from := range []string{"", " -f " + file} {
		status, stdout, stderr := d.runCroft(t, "", "verify --attack tolerate-every-taint"+from)
		if status != 1 || !strings.Contains(stdout, "BREACHED") {
			t.Errorf("verify%s without one binding: exit status %d: %s%s", from, status, stdout, stderr)
		}
	}
	if _, err := apply.New(d.admin).Apply(t.Context(), policies...); err != nil {
		t.Fatal(err)
	}
}
