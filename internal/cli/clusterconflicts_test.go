package cli_test

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/scheme"
	"croft.dev/croft/internal/test/sandbox"
)

// TestConflictsWithCluster tests conflicts with objects that are only in the cluster. An
// invalid object causes only a warning if the file is not involved; a conflict that the
// file causes is an error that names the object and its place.
func TestConflictsWithCluster(t *testing.T) {
	sandbox.EndToEnd(t)
	if testing.Short() {
		t.Skip("starts a control plane")
	}
	cluster := sandbox.Start(t, sandbox.Options{Components: sandbox.APIOnly})
	admin, err := client.New(cluster.Config, client.Options{Scheme: scheme.New()})
	if err != nil {
		t.Fatal(err)
	}
	croft := func(file string, args ...string) (status int, stderr string) {
		t.Helper()
		status, _, stderr = runCroft(t, "", append(args, "--kubeconfig", cluster.Kubeconfig, "-f", writeConfig(t, file))...)
		return status, stderr
	}
	tenant := func(name string, spec v1alpha1.TenantSpec) {
		t.Helper()
		if err := admin.Create(t.Context(), &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}); err != nil {
			t.Fatal(err)
		}
	}
	apply := []string{"apply", "--wait=false"}
	shop := good + "tenants: {apples: {pool: apps, domains: [a.org]}}\n"
	if status, stderr := croft(shop, apply...); status != 0 {
		t.Fatalf("exit status %d: %s", status, stderr)
	}
	tenant("bank", v1alpha1.TenantSpec{Pool: "apps", Domains: []string{"b.org"}})
	tenant("stray", v1alpha1.TenantSpec{Pool: "nowhere"})
	tenant("thief", v1alpha1.TenantSpec{Pool: "apps", Domains: []string{"a.org"}})
	pointedOut := []string{
		"in the cluster, not in this file: Tenant/stray: spec.pool: warning: there is no pool nowhere",
		"in the cluster, not in this file: Tenant/thief: spec.domains[0]: warning: a.org overlaps with a.org of tenant apples (",
	}

	for _, c := range []struct {
		name, file string
		args       []string
		status     int
		lines      []string
	}{
		{"apply an unrelated file", shop, apply, 0, pointedOut},
		{"diff an unrelated file", shop, []string{"diff"}, 1, pointedOut},
		{"claim a domain of a tenant in the cluster", good + "tenants: {apples: {pool: apps}, zebras: {pool: apps, domains: [b.org]}}\n", apply, 2,
			[]string{"tenants.zebras.domains[0]: b.org overlaps with b.org of tenant bank (in the cluster); a domain belongs to one tenant"}},
		{"claim a domain of a younger tenant in the cluster", good + "tenants: {apples: {pool: apps, domains: [b.org]}}\n", apply, 2,
			[]string{"in the cluster, not in this file: Tenant/bank: spec.domains[0]: b.org overlaps with b.org of tenant apples ("}},
	} {
		t.Run(c.name, func(t *testing.T) {
			status, stderr := croft(c.file, c.args...)
			if status != c.status {
				t.Errorf("exit status %d, want %d", status, c.status)
			}
			lines := strings.Split(stderr, "\n")
			for _, want := range c.lines {
				if !slices.ContainsFunc(lines, func(line string) bool { return strings.Contains(line, want) }) {
					t.Errorf("no line %q", want)
				}
			}
			if t.Failed() {
				t.Logf("standard error:\n%s", stderr)
			}
		})
	}
}
