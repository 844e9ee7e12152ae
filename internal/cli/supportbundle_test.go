package cli_test

import (
	"archive/tar"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
)

// planted is a credential in many objects of the test. No bundle may contain it.
// redact.
const planted = "s3cr3t-planted"

// leak matches the credential, also in the base64 encoding of Secrets, and whole Secrets
// and ConfigMaps.
var leak = regexp.MustCompile(planted + "|" + base64.StdEncoding.EncodeToString([]byte(planted)) + `|kind: (?:Secret|ConfigMap)\b`)

// testSupportBundle plants credentials in Secrets and in objects that are read. It expects
// none of them in a bundle, and no names in a redacted bundle.
func (p *people) testSupportBundle(t *testing.T) {
	p.createCredentials(t)
	kubeconfig := p.writeKubeconfig("system:masters", "")
	whole := p.runSupportBundle(t, kubeconfig, "--redact=false")
	redacted := p.runSupportBundle(t, kubeconfig)
	names := []string{
		"shop", "shop-prod", "shop-dev", "vault", "gone", "devs", "guests", "platform-admins", "platform-auditors",
		"tenants.example.org", "shop.tenants.example.org", "demo", "mirror.corp.example.net",
	}
	for file, text := range whole.files {
		if secret := leak.FindString(text); secret != "" {
			t.Errorf("%s has a credential: %s", file, secret)
		}
	}
	all := strings.Join(slices.Collect(iterateValues(whole.files)), "\n")
	for _, name := range names {
		if !hasName(all, name) {
			t.Errorf("the bundle that is not redacted does not have %s: this test proves nothing of it", name)
		}
	}
	for file, text := range redacted.files {
		if secret := leak.FindString(text); secret != "" {
			t.Errorf("%s has a credential: %s", file, secret)
		}
		for _, name := range names {
			if hasName(text, name) || hasName(file, name) {
				t.Errorf("%s names %s:\n%s", file, name, findLine(text, name))
			}
		}
	}
	for _, file := range []string{"versions.yaml", "doctor.yaml", "status.yaml", "objects/tenants.yaml", "objects/policies.yaml", "objects/operator.yaml"} {
		if len(redacted.files[file]) == 0 {
			t.Errorf("there is no %s: %v", file, redacted.files)
		}
	}
	shop := ""
	for pseudonym, name := range redacted.names {
		if name == "shop" {
			shop = pseudonym
		}
	}
	for _, file := range []string{"objects/tenants.yaml", "status.yaml", "objects/tenantrules.yaml"} {
		if shop == "" || !strings.Contains(redacted.files[file], shop) {
			t.Errorf("%s does not have shop's pseudonym %q", file, shop)
		}
	}
	if again := p.runSupportBundle(t, kubeconfig); strings.Contains(again.files["objects/tenants.yaml"], shop) {
		t.Error("two bundles have the same pseudonyms: names can be tried out")
	}
}

// createCredentials puts credentials into the places where users put them.
func (p *people) createCredentials(t *testing.T) {
	t.Helper()
	labels := map[string]string{"app.kubernetes.io/name": "croft"}
	for _, o := range []client.Object{
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop-prod", Name: "db"}, StringData: map[string]string{"password": planted}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.SystemNamespace, Name: "croft-proxy-tls"}, StringData: map[string]string{"tls.key": planted}},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.SystemNamespace, Name: "croft-proxy"}, Data: map[string]string{"secret": planted}},
		&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.SystemNamespace, Name: "croft"}, Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{
				Name: "croft", Image: "mirror.corp.example.net/croft:v1", Env: []corev1.EnvVar{{Name: "HTTPS_PROXY", Value: "http://" + planted + "@proxy"}},
			}}}},
		}},
		&corev1.Event{
			ObjectMeta:     metav1.ObjectMeta{Namespace: v1alpha1.SystemNamespace, Name: "told"},
			InvolvedObject: corev1.ObjectReference{Namespace: v1alpha1.SystemNamespace, Kind: "Pod", Name: "croft-0"},
			Reason:         "Failed", Message: `cannot pull for shop-prod: {"password": "` + planted + `"}`,
		},
	} {
		if err := p.admin.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	patch := `{"metadata":{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"` + planted + `"}}}`
	tenant := &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}
	if err := p.admin.Patch(t.Context(), tenant, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		t.Fatal(err)
	}
}

type unpackedBundle struct {
	files, names map[string]string
}

// runSupportBundle runs croft support-bundle and unpacks the result.
func (p *people) runSupportBundle(t *testing.T, kubeconfig string, flags ...string) unpackedBundle {
	t.Helper()
	base := filepath.Join(t.TempDir(), "bundle")
	status, stdout, stderr := runCroft(t, "", append([]string{"support-bundle", "-o", base + ".tar.gz", "--kubeconfig", kubeconfig}, flags...)...)
	if status != 0 || strings.TrimSpace(stdout) != base+".tar.gz" {
		t.Fatalf("exit status %d:\n%s%s", status, stdout, stderr)
	}
	if again, _, _ := runCroft(t, "", "support-bundle", "-o", base+".tar.gz", "--kubeconfig", kubeconfig); again != 2 {
		t.Errorf("it was written over: exit status %d", again)
	}
	got := unpackedBundle{files: map[string]string{}}
	file, err := os.Open(base + ".tar.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	compressed, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	for archive := tar.NewReader(compressed); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		got.files[strings.TrimPrefix(header.Name, "bundle/")] = string(text)
	}
	text, err := os.ReadFile(base + ".names.json")
	if redacted := len(flags) == 0; redacted == errors.Is(err, os.ErrNotExist) {
		t.Errorf("names next to the bundle: %v", err)
	} else if redacted {
		if err := json.Unmarshal(text, &got.names); err != nil {
			t.Fatal(err)
		}
	}
	return got
}

func iterateValues(files map[string]string) func(func(string) bool) {
	return func(yield func(string) bool) {
		for _, text := range files {
			if !yield(text) {
				return
			}
		}
	}
}

// hasName reports whether a text contains a name as a separate word, also next to a
// hyphen.
func hasName(text, name string) bool { return compileNamePattern(name).MatchString(text) }

func compileNamePattern(name string) *regexp.Regexp {
	return regexp.MustCompile(`\b` + regexp.QuoteMeta(name) + `\b`)
}

// findLine returns the line that contains a name.
func findLine(text, name string) string {
	for line := range strings.Lines(text) {
		if hasName(line, name) {
			return line
		}
	}
	return ""
}
