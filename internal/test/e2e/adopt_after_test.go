package e2e

import (
	"fmt"
	"strings"
	"testing"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/test/sandbox"
)

// refusedFirst is an estate with tenants whose namespaces exist already.
const refusedFirst = 8

// TestAdoptAfterApply adopts tenants after `croft apply` was refused for them. It fails if a
// status that the operator wrote before the permission counts as the answer to it, or if the
// plan is wrong about a namespace that a deleted tenant left behind.
func TestAdoptAfterApply(t *testing.T) {
	sandbox.Thorough(t) // TestAdopt and TestTwoTenants/Adoption adopt one tenant each
	t.Parallel()        // it mostly waits
	c := startSandbox(t, sandbox.Options{Croft: findCroftBinary(t)})
	var text strings.Builder
	text.WriteString("platform: {clusterName: demo, nodeClass: {kwok: {}}}\npools: {apps: {}}\ntenants:\n")
	for i := range refusedFirst {
		fmt.Fprintf(&text, "  old-%d: {pool: apps}\n", i)
		c.runKubectl(t, "", "create", "ns", fmt.Sprintf("old-%d", i)).expectExit(t, 0)
	}
	file := writeTempFile(t, text.String())
	out := c.runCroft(t, "apply", "-f", file, "--wait-timeout", patience.String()).expectExit(t, 1)
	if !strings.Contains(out.stderr, "exists already and croft did not create it") {
		t.Fatalf("apply does not report why: %s", out)
	}

	t.Run("adopt", func(t *testing.T) {
		for i := range refusedFirst / 2 {
			c.runCroft(t, "adopt", "tenant", fmt.Sprintf("old-%d", i), "-f", file, "--yes", "--wait-timeout", patience.String()).expectExit(t, 0)
		}
	})
	t.Run("permitted by hand", func(t *testing.T) {
		for i := refusedFirst / 2; i < refusedFirst; i++ {
			name := fmt.Sprintf("old-%d", i)
			c.runKubectl(t, "", "annotate", "namespace", name, v1alpha1.AdoptAnnotation+"="+name).expectExit(t, 0)
			one := fmt.Sprintf("tenants: {%s: {pool: apps}}\n", name)
			c.applyContent(t, one)
		}
	})
	t.Run("another tenant's", func(t *testing.T) {
		taken := writeTempFile(t, "tenants: {thief: {pool: apps, namespaces: [old-0]}, old-0: {pool: apps, namespaces: [old-0-new]}}\n")
		out := c.runCroft(t, "adopt", "tenant", "thief", "-f", taken, "--dry-run").expectExit(t, 1)
		if want := "namespace old-0 belongs to tenant old-0: remove it from that tenant first"; !strings.Contains(out.stdout, want) {
			t.Errorf("the plan does not contain %q: %s", want, out)
		}
	})
	t.Run("kept from a deleted tenant", func(t *testing.T) { c.adoptKept(t) })
}

// adoptKept adopts, for another tenant, a namespace that a deleted tenant left behind.
func (c *cluster) adoptKept(t *testing.T) {
	t.Helper()
	c.applyContent(t, "tenants: {gone: {pool: apps, namespaces: [kept], quota: {pods: \"7\"}, limits: {default: {cpu: 100m}}}}\n")
	c.runCroft(t, "delete", "tenant", "gone", "--yes").expectExit(t, 0)
	before := selectTenantState(c.recordState(t), "kept", "")
	heir := writeTempFile(t, "tenants: {heir: {pool: apps, namespaces: [kept]}}\n")
	out := c.runCroft(t, "adopt", "tenant", "heir", "-f", heir, "--dry-run").expectExit(t, 0)
	if want := "namespace kept was released or retained by tenant gone, and will be adopted"; !strings.Contains(out.stdout, want) || strings.Contains(out.stdout, "remove it from") {
		t.Errorf("the plan does not contain %q: %s", want, out)
	}
	for range 2 { // --undo restores croft's objects of the deleted tenant, which the second run removes again
		c.runCroft(t, "adopt", "tenant", "heir", "-f", heir, "--yes").expectExit(t, 0)
		if labels := c.getNamespace(t, "kept").Labels; labels[v1alpha1.TenantLabel] != "heir" {
			t.Errorf("the namespace has the labels %v", labels)
		}
		for ref, o := range c.listEverything(t) {
			if ref.Namespace == "kept" && o.Labels[v1alpha1.TenantLabel] == "gone" {
				t.Errorf("%s of the deleted tenant is left", ref)
			}
		}
		c.runCroft(t, "adopt", "tenant", "heir", "--undo", "--yes").expectExit(t, 0)
		expectSame(t, "kept after --undo", before, selectTenantState(c.recordState(t), "kept", ""))
	}
}
