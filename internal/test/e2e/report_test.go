package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/prove/verify"
	"croft.dev/croft/internal/rules/attack"
	"croft.dev/croft/internal/test/sandbox"
	"croft.dev/croft/internal/walls/wall"
)

// testDiff fails if diff reports the API server's defaults as differences, or does not show the
// objects that croft would change for a declaration.
func testDiff(t *testing.T, c *twoTenants) {
	if same := c.runCroft(t, "diff", "-f", c.file).expectExit(t, 0); same.stdout != "" {
		t.Errorf("nothing differs, and diff prints: %s", same)
	}

	edited := replaceFirst(t, readRepositoryFile(t, c.file), "auditors", "inspectors")
	edited = replaceFirst(t, edited, "emptyTTL: 10s", "emptyTTL: 20s")
	changed := c.runCroft(t, "diff", "-f", writeTempFile(t, edited)).expectExit(t, 1)
	for _, want := range []string{
		"RoleBinding tenant-b/croft-viewer", "-  name: auditors", "+  name: inspectors",
		"NodePool pool-a", "-    consolidateAfter: 10s", "+    consolidateAfter: 20s",
	} {
		if !strings.Contains(changed.stdout, want) {
			t.Errorf("diff does not show %q: %s", want, changed)
		}
	}

	// Planned deletions are shown like planned writes.
	withdrawn := replaceFirst(t, readRepositoryFile(t, c.file), "      - {group: auditors, role: viewer}\n", "")
	out := c.runCroft(t, "diff", "-f", writeTempFile(t, withdrawn)).expectExit(t, 1)
	if want := "-  name: auditors"; !strings.Contains(out.stdout, want) {
		t.Errorf("diff does not show that a RoleBinding goes, %q: %s", want, out)
	}
}

// replaceFirst replaces the first occurrence of a text, which must exist.
func replaceFirst(t testing.TB, text, before, after string) string {
	t.Helper()
	edited := strings.Replace(text, before, after, 1)
	if edited == text {
		t.Fatalf("there is no %q to edit in:\n%s", before, text)
	}
	return edited
}

// testStatus fails if an object of a wall is missing, or is not counted.
func testStatus(t *testing.T, c *twoTenants) {
	var status struct {
		Platform v1alpha1.Platform `json:"platform"`
		Pools    []v1alpha1.Pool   `json:"pools"`
		Tenants  []v1alpha1.Tenant `json:"tenants"`
		Walls    []struct {
			Name    string   `json:"name"`
			Desired int      `json:"desired"`
			InPlace int      `json:"inPlace"`
			Missing []string `json:"missing"`
		} `json:"walls"`
	}
	unmarshalOutput(t, c.runCroft(t, "status", "-o", "json").expectExit(t, 0), &status)

	if status.Platform.Name != v1alpha1.PlatformName || len(status.Pools) < len(c.estate.Pools) || len(status.Tenants) < len(c.estate.Tenants) {
		t.Errorf("status shows Platform %q, %d Pools and %d Tenants", status.Platform.Name, len(status.Pools), len(status.Tenants))
	}
	standing := map[string]bool{}
	for _, w := range status.Walls {
		standing[w.Name] = w.Desired > 0 && w.InPlace == w.Desired && len(w.Missing) == 0
	}
	for _, w := range wall.All() {
		if !standing[w.Name()] {
			t.Errorf("the %s wall is not in place: %+v", w.Name(), status.Walls)
		}
	}
}

// testVerify fails if an attack on any wall succeeds, if a legitimate request is refused, if an
// attack cannot be tried, or if the scratch tenants remain. TestWallsHold tries the same attacks,
// TestDocs runs the whole command in `make e2e`, and testBreaches a part of it.
func testVerify(t *testing.T, c *twoTenants) {
	sandbox.Thorough(t)
	var report struct {
		Results []verify.Result `json:"results"`
	}
	out := c.runCroft(t, "verify", "-o", "json")
	unmarshalOutput(t, out, &report)

	tried := map[string]int{}
	for _, r := range report.Results {
		tried[r.Wall+" "+string(r.Kind)]++
		// The sandbox of this test has no Gateway API, cert-manager or Flux, and is not
		// OpenShift.
		absent := r.Result == verify.NotTried && (strings.HasPrefix(r.Message, "this cluster has no ") || r.Message == "there is no namespace openshift-dns")
		if r.Result != verify.Held && !absent {
			t.Errorf("%s/%s (%s): %s: %s", r.Wall, r.Name, r.Summary, r.Result, r.Message)
		}
	}
	for _, w := range wall.All() {
		for _, kind := range []attack.Kind{attack.Breach, attack.Mirror} {
			if tried[w.Name()+" "+string(kind)] == 0 {
				t.Errorf("verify tried no %s on the %s wall", kind, w.Name())
			}
		}
	}
	if out.status != 0 && !t.Failed() {
		t.Errorf("every wall held, and croft verify exits with status %d", out.status)
	}
	awaitCondition(t, patience, "the scratch tenants' namespaces to go", func(ctx context.Context) error {
		namespaces, err := c.listTenantNamespaces(ctx)
		if err != nil {
			return err
		}
		for _, n := range namespaces {
			if strings.HasPrefix(n.Name, "croft-verify-") {
				return fmt.Errorf("%s is there", n.Name)
			}
		}
		return nil
	})
}

// unmarshalOutput decodes the output of a command with -o json.
func unmarshalOutput(t testing.TB, o outcome, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(o.stdout), into); err != nil {
		t.Fatalf("not JSON: %v: %s", err, o)
	}
}
