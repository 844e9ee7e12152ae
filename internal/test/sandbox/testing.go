package sandbox

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// tailBytes is the length of the part of each component's log that a failed test prints.
const tailBytes = 3000

// All reports whether all tests run, and with all repetitions, as in `make test-all`.
func All() bool { return os.Getenv("CROFT_TEST_ALL") != "" }

// Thorough skips a test that `make test` leaves to `make test-all`: one that takes minutes, and
// whose subject other tests cover in another way or on the most common platform.
func Thorough(t testing.TB) {
	t.Helper()
	if !All() {
		t.Skip("`make test-all` runs it")
	}
}

// EndToEnd skips a test that `make test` leaves to `make e2e` or `make race`, which CI also runs:
// one with an operator, or one that covers many parts of croft on its own control plane, which
// costs some ten seconds of a core before the test begins. A test of `make test` mostly finds
// the same faults.
func EndToEnd(t testing.TB) {
	t.Helper()
	if !All() && os.Getenv("CROFT_TEST_E2E") == "" {
		t.Skip("`make e2e` or `make race` runs it")
	}
}

// Start starts a sandbox for one test, and stops it when the test ends. If the test failed, it
// prints the ends of the components' logs.
func Start(t testing.TB, o Options) *Cluster {
	t.Helper()
	if o.Dir == "" {
		// The path of t.TempDir() contains the test's name, so it may be too long.
		dir, err := os.MkdirTemp("", "croft-sandbox-")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := os.RemoveAll(dir); err != nil {
				t.Errorf("delete the sandbox: %v", err)
			}
		})
		o.Dir = dir
	}
	t.Cleanup(func() {
		if t.Failed() {
			showLogs(t, o.Dir)
		}
	})
	c, err := Up(t.Context(), o)
	if err != nil {
		t.Fatalf("start a sandbox: %v", err)
	}
	t.Cleanup(func() {
		if err := c.Down(); err != nil {
			t.Errorf("take the sandbox down: %v", err)
		}
	})
	return c
}

func showLogs(t testing.TB, dir string) {
	t.Helper()
	logs, err := filepath.Glob(filepath.Join(dir, "logs", "*.log"))
	if err != nil {
		t.Log(err)
	}
	for _, path := range logs {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Log(err)
			continue
		}
		tail := content[max(0, len(content)-tailBytes):]
		if len(tail) < len(content) { // do not begin in the middle of a line
			tail = tail[strings.IndexByte(string(tail), '\n')+1:]
		}
		t.Logf("--- %s\n%s", filepath.Base(path), tail)
	}
}
