package cli_test

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/pmezard/go-difflib/difflib"
)

var update = flag.Bool("update", false, "rewrite testdata from croft's output")

// TestRender compares the walls of a file with the golden files, so that a change of any
// object shows in the review. The policies of all examples are nearly the same: for all but
// the first example, the golden files contain the difference to it, so that a change of a
// policy is reviewed once. After a change, run `go test ./internal/cli -update` and review
// the diff.
func TestRender(t *testing.T) {
	first := renderFile(t, "../../examples/two-tenants.yaml")
	assertGolden(t, "testdata/two-tenants.golden.yaml", strings.Join(first, separator))
	policies := map[string]string{}
	for _, object := range first {
		policies[findPolicyName(object)] = object
	}
	for _, name := range []string{"gatekeeper", "every-field"} {
		var different []string
		for _, object := range renderFile(t, "testdata/"+name+".yaml") {
			policy := findPolicyName(object)
			if before, known := policies[policy]; known && policy != "" {
				object = diffPolicies(t, policy, before, object)
			}
			if object != "" {
				different = append(different, object)
			}
		}
		assertGolden(t, "testdata/"+name+".golden.txt", strings.Join(different, separator))
	}
}

// separator separates the objects of a rendered file.
const separator = "---\n"

// renderFile returns the objects that croft renders from a file.
func renderFile(t *testing.T, file string) []string {
	t.Helper()
	status, got, stderr := runCroft(t, "", "render", "-f", file)
	if status != 0 {
		t.Fatal(stderr)
	}
	return strings.Split(got, separator)
}

// policyKind matches long objects that hardly differ between examples: admission policies,
// their bindings and ClusterRoles.
var policyKind = regexp.MustCompile(`(?s)\nkind: ((?:Validating|Mutating)AdmissionPolicy(?:Binding)?|ClusterRole)\n.*?\n  name: (\S+)\n`)

// findPolicyName returns a policy's kind and name, or "" for any other object.
func findPolicyName(object string) string {
	found := policyKind.FindStringSubmatch(object)
	if found == nil {
		return ""
	}
	return found[1] + " " + found[2]
}

// diffPolicies returns a unified diff of two policies, or "" if they are the same.
func diffPolicies(t *testing.T, name, before, after string) string {
	t.Helper()
	text, err := difflib.GetUnifiedDiffString(difflib.UnifiedDiff{
		A: difflib.SplitLines(before), B: difflib.SplitLines(after), FromFile: "two-tenants: " + name, ToFile: name, Context: 1,
	})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// assertGolden compares croft's output with a golden file.
func assertGolden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s is not as it was; if it is meant, run with -update:\n%s", path, diff)
	}
}

// TestRenderIsDeterministic expects byte-identical output for the same file: a GitOps
// repository must not change without a change of its input.
func TestRenderIsDeterministic(t *testing.T) {
	for _, example := range []string{"../../examples/platform.yaml", "../../examples/calico.yaml"} {
		content, err := os.ReadFile(example)
		if err != nil {
			t.Fatal(err)
		}
		_, first, _ := runCroft(t, "", "render", "-f", example)
		for range 5 {
			status, again, stderr := runCroft(t, string(content), "render", "-f", "-")
			if status != 0 {
				t.Fatal(stderr)
			}
			if first != again {
				t.Fatalf("%s rendered differently", example)
			}
		}
		for _, noise := range []string{"creationTimestamp", "status:", "resourceVersion", "managedFields:"} {
			if strings.Contains(first, noise) {
				t.Errorf("what only a server can know was rendered of %s: %s", example, noise)
			}
		}
	}
}

// TestRenderObjects fails if the declared objects differ from the file: the walls of both
// must be the same, and no object may have a field that the file leaves out.
func TestRenderObjects(t *testing.T) {
	for _, example := range []string{"../../examples/platform.yaml", "../../examples/aws.yaml", "../../examples/networks.yaml", "testdata/every-field.yaml"} {
		status, objects, stderr := runCroft(t, "", "render", "--objects", "-f", example)
		if status != 0 {
			t.Fatal(stderr)
		}
		for _, kind := range []string{"\nkind: Platform\n", "\nkind: Pool\n", "\nkind: Tenant\n"} {
			if !strings.Contains(objects, kind) {
				t.Errorf("%s: there is no%sin:\n%s", example, strings.ReplaceAll(kind, "\n", " "), objects)
			}
		}
		if strings.Contains(objects, "deletion: Retain") && !strings.Contains(example, "every") || strings.Contains(objects, "status:") || strings.Contains(objects, "NetworkPolicy\n") {
			t.Errorf("%s: defaults, a status or walls are rendered:\n%s", example, objects)
		}
		_, again, _ := runCroft(t, objects, "render", "--objects", "-f", "-")
		_, want, _ := runCroft(t, "", "render", "-f", example)
		_, got, stderr := runCroft(t, objects, "render", "-f", "-")
		if want != got || again != objects {
			t.Errorf("%s: the objects have other walls than the file: %s", example, stderr)
		}
	}
}

// TestRenderDex runs in `make test`. It compares the configuration of Dex with the golden
// file. TestDex in internal/access/login logs in with it.
func TestRenderDex(t *testing.T) {
	issuer := "https://dex.example.org/dex"
	status, got, stderr := runCroft(t, "", "render", "-f", "../../examples/platform.yaml", "--dex", "--issuer", issuer)
	if status != 0 {
		t.Fatal(stderr)
	}
	assertGolden(t, "testdata/dex.golden.yaml", got)

	for _, test := range []struct{ flags, wantText string }{
		{"--dex", "--issuer is not set"},
		{"--dex --issuer http://dex.example.org", "must be an https URL"},
		{"--dex --client-id= --issuer " + issuer, "--client-id is empty"},
		{"--dex -o json --issuer " + issuer, "-o json: the configuration of Dex is YAML"},
		{"--issuer " + issuer, "--issuer has no effect here: it is for --dex"},
		{"--client-id kubernetes", "--client-id has no effect here: it is for --dex"},
	} {
		args := append([]string{"render", "-f", "../../examples/platform.yaml"}, strings.Fields(test.flags)...)
		status, stdout, stderr := runCroft(t, "", args...)
		if status != 2 || stdout != "" || !strings.Contains(stderr, test.wantText) || strings.Count(stderr, "\n") != 1 {
			t.Errorf("croft render %s: exit status %d: %s%s", test.flags, status, stdout, stderr)
		}
	}
}

// TestRenderArgoCD runs in `make test`. It compares the objects for Argo CD with the golden
// file.
func TestRenderArgoCD(t *testing.T) {
	const file = "testdata/argocd.yaml"
	status, got, stderr := runCroft(t, "", "render", "-f", file, "--argocd")
	if status != 0 {
		t.Fatal(stderr)
	}
	assertGolden(t, "testdata/argocd.golden.yaml", got)
	status, all, stderr := runCroft(t, "", "render", "-f", file)
	if status != 0 || strings.Contains(all, "argoproj.io/v1alpha1") || strings.Contains(all, "kind: Kustomization") || !strings.Contains(all, "name: croft-deployer") {
		t.Errorf("exit status %d %s: croft's own objects are to hold the deployer, and none of Flux or Argo CD", status, stderr)
	}
	if status, got, stderr := runCroft(t, "", "render", "-f", file, "--argocd", "--argocd-namespace", "gitops"); status != 0 || strings.Count(got, "\n  namespace: gitops\n") != 5 {
		t.Errorf("exit status %d %s, printed %s", status, stderr, got)
	}
	for _, test := range []struct{ flags, wantText string }{
		{"-f ../../examples/platform.yaml --argocd", "set platform.gitops to ArgoCD"},
		{"-f " + file + " --argocd --argocd-namespace shop-dev", "shop-dev is a namespace of tenant shop"},
		{"-f " + file + " --argocd-namespace gitops", "--argocd-namespace has no effect here: it is for --argocd"},
		{"-f " + file + " --argocd --dex", "--argocd and --dex exclude each other"},
	} {
		status, stdout, stderr := runCroft(t, "", append([]string{"render"}, strings.Fields(test.flags)...)...)
		if status != 2 || stdout != "" || !strings.Contains(stderr, test.wantText) || strings.Count(stderr, "\n") != 1 {
			t.Errorf("croft render %s: exit status %d: %s%s", test.flags, status, stdout, stderr)
		}
	}
}

// TestUserDataFile expects files that croft.yaml names to be read relative to croft.yaml,
// in any working directory.
func TestUserDataFile(t *testing.T) {
	file := writeConfig(t, "platform: {clusterName: demo, nodeClass: {aws: {role: nodes, userDataFile: boot/script.sh}}}\npools: {apps: {}}\n")
	script := filepath.Join(filepath.Dir(file), "boot", "script.sh")
	if status, _, stderr := runCroft(t, "", "render", "-f", file); status != 2 || stderr != file+":1: platform.nodeClass.aws.userDataFile: "+script+": there is no such file\n" {
		t.Errorf("exit status %d: %s", status, stderr)
	}
	if err := os.MkdirAll(filepath.Dir(script), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(script, []byte("echo hello\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if status, stdout, stderr := runCroft(t, "", "render", "-f", file); status != 0 || !strings.Contains(stdout, "  userData: |\n    echo hello\n") {
		t.Errorf("exit status %d: %s", status, stderr)
	}
}
