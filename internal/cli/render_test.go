package cli_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write testdata anew from what croft renders")

// TestRender holds everything that the walls make of a file against what was
// reviewed: a change of any object is a change of a file that people read. Run
// `go test ./internal/cli -update` and look at the diff.
func TestRender(t *testing.T) {
	for name, file := range map[string]string{
		"two-tenants": "../../examples/two-tenants.yaml",
		"gatekeeper":  "testdata/gatekeeper.yaml",
		"every-field": "testdata/every-field.yaml",
	} {
		t.Run(name, func(t *testing.T) {
			status, got, stderr := run(t, "", "render", "-f", file)
			if status != 0 {
				t.Fatal(stderr)
			}
			golden := filepath.Join("testdata", name+".golden.yaml")
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("croft renders something else than %s; if it is meant, run with -update and look at the diff", golden)
			}
		})
	}
}

// TestRenderIsDeterministic renders the same file twice, to the byte the same:
// a GitOps repository must not change by itself.
func TestRenderIsDeterministic(t *testing.T) {
	for _, example := range []string{"../../examples/platform.yaml", "../../examples/calico.yaml"} {
		content, err := os.ReadFile(example)
		if err != nil {
			t.Fatal(err)
		}
		_, first, _ := run(t, "", "render", "-f", example)
		for range 5 {
			status, again, stderr := run(t, string(content), "render", "-f", "-")
			if status != 0 {
				t.Fatal(stderr)
			}
			if first != again {
				t.Fatalf("%s rendered differently", example)
			}
		}
		for _, noise := range []string{"creationTimestamp", "status:", "resourceVersion", "managedFields"} {
			if strings.Contains(first, noise) {
				t.Errorf("what only a server can know was rendered of %s: %s", example, noise)
			}
		}
	}
}
