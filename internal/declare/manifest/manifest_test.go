package manifest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"croft.dev/croft/internal/declare/document"
)

// base is a valid beginning of croft.yaml; a test's own lines begin on line 7.
const base = `platform:
  clusterName: demo
  tenantDomain: tenants.example.org
  network: {platformNamespaces: [ingress]}
  nodeClass: {kwok: {}}

`

// parseValid parses a file named croft.yaml that has no problem.
func parseValid(t testing.TB, content string) *Declaration {
	t.Helper()
	d, problems := Parse("croft.yaml", []byte(content))
	if err := problems.Err(); err != nil {
		t.Fatalf("unexpected problems:\n%v", err)
	}
	return d
}

// expectProblems compares problems with the expected lines.
func expectProblems(t *testing.T, problems document.Problems, want ...string) {
	t.Helper()
	if diff := cmp.Diff(strings.Join(want, "\n"), problems.Error()); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

// badInput is content and croft's complete message about it.
type badInput struct {
	name    string
	content string
	want    []string
}

// readExamples returns the contents of the examples, by file name.
func readExamples(t testing.TB) map[string]string {
	t.Helper()
	files, err := filepath.Glob("../../../examples/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	contents := map[string]string{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		contents[filepath.Base(file)] = string(data)
	}
	return contents
}

// TestSchemasFit fails if a schema rule does not compile, which would otherwise only show when
// an object violates it.
func TestSchemasFit(t *testing.T) {
	if _, err := schemas(); err != nil {
		t.Fatal(err)
	}
}
