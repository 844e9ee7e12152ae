package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"croft.dev/croft/internal/observe/denials"
	"croft.dev/croft/internal/test/sandbox"
)

// TestDenials expects a refusal, and a violation of a rule on trial, in the API server's own audit log.
func TestDenials(t *testing.T) {
	sandbox.EndToEnd(t)
	policy := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(policy, []byte("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := startSandbox(t, sandbox.Options{Components: sandbox.WithControllers, Croft: findCroftBinary(t), AuditPolicy: policy})
	c.runCroft(t, "apply", "--wait=false", "-f", writeTempFile(t, `
platform: {clusterName: demo, nodeClass: {kwok: {}}}
pools: {apps: {instances: {capacityTypes: [on-demand], instanceTypes: [m5.large]}}}
tenants:
  shop:
    pool: apps
    access: [{group: developers, role: operator}]
    policy: {images: {latest: Forbidden}, trial: [images]}
`)).expectExit(t, 0)
	c.awaitTenantReady(t, "shop")
	as := func(args ...string) outcome {
		return c.runKubectl(t, "", append([]string{"-n", "shop", "--as=jane", "--as-group=developers"}, args...)...)
	}
	as("run", "warned", "--image=nginx:latest").expectExit(t, 0)
	as("create", "service", "nodeport", "refused", "--tcp=80").expectExit(t, 1)
	as("create", "service", "nodeport", "tried", "--tcp=80", "--dry-run=server").expectExit(t, 1)
	for _, want := range []struct {
		flag, rule, message string
	}{
		{"--trial=false", "croft-services/service-type", "spec.type: "},
		{"--trial", "croft-pod-trials/image-reference", "would be refused without the trial of policy.images: "},
	} {
		var found []denials.Denial
		if err := json.Unmarshal([]byte(c.runCroft(t, "denials", c.AuditLog(), "-n", "shop", want.flag, "-o", "json").expectExit(t, 0).stdout), &found); err != nil {
			t.Fatal(err)
		}
		if len(found) != 1 || found[0].Rule != want.rule || found[0].Requests != 1 || found[0].Users[0] != "jane" || !strings.HasPrefix(found[0].Message, want.message) {
			t.Errorf("%s: %+v, want one request that %s refuses", want.flag, found, want.rule)
		}
	}
}
