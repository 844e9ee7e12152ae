package operator_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/operate/operator/operatortest"
	"croft.dev/croft/internal/test/sandbox"
)

// testPruneByFile covers the deletions by a file: of a namespace that a tenant no longer
// declares, and of objects that are in the cluster but not in the file.
func testPruneByFile(f *fixture) {
	f.Create(operatortest.NewPool("spare"), operatortest.NewTenant("leaver", "spare"))
	f.AwaitReady(operatortest.NewTenant("leaver", "spare"))
	file := filepath.Join(f.TempDir(), "croft.yaml")
	declare := func(namespaces string) {
		f.Helper()
		text := `
platform: {clusterName: demo, tenantDomain: tenants.example.org, nodeClass: {kwok: {}}}
pools: {apps: {}}
tenants: {keeper: {pool: apps, namespaces: ` + namespaces + `, access: [{group: devs, role: operator}]}}
`
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			f.Fatal(err)
		}
	}
	// croft runs as its own process: the command line sets the process-wide logger, and the
	// operator runs in this process.
	binary, err := sandbox.FindTool("croft")
	if err != nil {
		f.Fatal(err)
	}
	run := func(args ...string) (status int, stdout, stderr string) {
		f.Helper()
		var out, errs bytes.Buffer
		cmd := exec.CommandContext(f.Context(), binary, append(args, "-f", file, "--kubeconfig", f.Cluster.Kubeconfig)...)
		cmd.Stdout, cmd.Stderr = &out, &errs
		var exit *exec.ExitError
		if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
			f.Fatal(err)
		}
		return cmd.ProcessState.ExitCode(), out.String(), errs.String()
	}
	croft := func(want int, args ...string) (stdout, stderr string) {
		f.Helper()
		status, stdout, stderr := run(args...)
		if status != want {
			f.Fatalf("croft %v: exit status %d, want %d\n%s%s", args, status, want, stdout, stderr)
		}
		return stdout, stderr
	}
	expectParts := func(text string, parts ...string) {
		f.Helper()
		for _, part := range parts {
			if !strings.Contains(text, part) {
				f.Errorf("it does not print %q:\n%s", part, text)
			}
		}
	}

	declare("[keeper, keeper-test]")
	_, message := croft(0, "apply", "--force") // over values that other tests have set
	expectParts(message, "the cluster also has tenants ", "and pool spare, which this file does not name: they stay; --prune")
	croft(0, "diff")

	declare("[keeper]")
	shown, message := croft(1, "diff")
	expectParts(shown, "--- RoleBinding keeper-test/croft-operator (live)", "-kind: RoleBinding")
	expectParts(message, "and pool spare, which this file does not name")
	if strings.Contains(shown, "Tenant leaver") {
		f.Errorf("without --prune, the diff deletes a tenant:\n%s", shown)
	}
	shown, _ = croft(1, "diff", "--prune")
	expectParts(shown, "--- Tenant leaver (live)", "--- RoleBinding leaver/croft-operator (live)", "--- Pool spare (live)", "--- NodePool spare (live)")

	_, message = croft(1, "apply", "--prune")
	expectParts(message, "Tenant leaver (deletion: Retain)", "namespace leaver stays", "Pool spare", "nothing was written: --prune asks for a confirmation, and standard input is not a terminal")
	f.AwaitReady(operatortest.NewTenant("leaver", ""), operatortest.NewPool("spare"))
	if f.CountBindings("keeper-test") == 0 {
		f.Error("something was written")
	}

	croft(0, "apply", "--prune", "--yes")
	f.AwaitDeletion(operatortest.NewTenant("leaver", ""))
	f.AwaitDeletion(operatortest.NewPool("spare"))
	f.AwaitDeletion(&karpenterv1.NodePool{ObjectMeta: operatortest.NewPool("spare").ObjectMeta})
	if n := f.CountBindings("leaver") + f.CountBindings("keeper-test"); n != 0 {
		f.Errorf("%d bindings, want none", n)
	}
	if len(f.ListPolicies("leaver")) == 0 {
		f.Error("the walls of a tenant with deletion: Retain are deleted")
	}
	var left v1alpha1.TenantList
	if err := f.Client.List(f.Context(), &left); err != nil || len(left.Items) != 1 {
		f.Errorf("%d tenants, %v; want the one of the file", len(left.Items), err)
	}
	f.AwaitReady(operatortest.NewPlatform())
	if err := f.Client.Get(f.Context(), client.ObjectKey{Name: "leaver"}, operatortest.NewNamespace("leaver")); err != nil {
		f.Errorf("the namespace of a tenant with deletion: Retain: %v", err)
	}
	// The share of the retained namespace is released asynchronously.
	f.Await("no difference", func() string {
		status, stdout, stderr := run("diff", "--prune")
		if status != 0 {
			return stdout + stderr
		}
		return stderr
	})
}
