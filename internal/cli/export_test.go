package cli_test

import (
	"strings"
	"testing"
)

// TestExportBackstage prints the catalog of an example in both formats.
func TestExportBackstage(t *testing.T) {
	status, stdout, stderr := runCroft(t, "", "export", "backstage", "-f", "../../examples/two-tenants.yaml")
	if status != 0 || stderr != "" {
		t.Fatalf("exit status %d: %s", status, stderr)
	}
	const component = `---
apiVersion: backstage.io/v1alpha1
kind: Component
metadata:
  annotations:
    backstage.io/kubernetes-label-selector: '!croft.dev/not-in-backstage'
    backstage.io/kubernetes-namespace: tenant-a
  name: tenant-a
spec:
  lifecycle: production
  owner: group:team-a
  system: tenant-a
  type: kubernetes-namespace
`
	if !strings.Contains(stdout, component) || strings.Count(stdout, "---\n") != 6 {
		t.Errorf("%s", stdout)
	}
	if status, stdout, _ := runCroft(t, "", "export", "backstage", "-f", "../../examples/two-tenants.yaml", "-o", "json"); status != 0 || !strings.Contains(stdout, `"kind": "System"`) {
		t.Errorf("exit status %d: %s", status, stdout)
	}
	const same = "platform: {clusterName: a, nodeClass: {kwok: {}}}\npools: {p: {}}\ntenants:\n" +
		"  a: {pool: p, access: [{group: 'team:a', role: operator}]}\n  b: {pool: p, access: [{group: team/a, role: operator}]}\n"
	if status, stdout, stderr := runCroft(t, same, "export", "backstage", "-f", "-"); status != 2 || stdout != "" || !strings.Contains(stderr, "the same name in Backstage") {
		t.Errorf("exit status %d: %s%s", status, stdout, stderr)
	}
}
