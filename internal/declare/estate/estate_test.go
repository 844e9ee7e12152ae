package estate

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"croft.dev/croft/internal/declare/document"
	"croft.dev/croft/internal/declare/manifest"
)

// base is a valid beginning of croft.yaml; a test's own lines begin on line 7.
const base = `platform:
  clusterName: demo
  tenantDomain: tenants.example.org
  network: {platformNamespaces: [ingress]}
  nodeClass: {kwok: {}}

`

// parseAndBuild parses and builds one file named croft.yaml.
func parseAndBuild(content string) (*manifest.Declaration, *Estate, document.Problems) {
	d, problems := manifest.Parse("croft.yaml", []byte(content))
	e, more := Build(d)
	return d, e, append(problems, more...).Sorted()
}

// parseValid reads content, and ends the test if there are problems.
func parseValid(t testing.TB, content string) (*manifest.Declaration, *Estate) {
	t.Helper()
	d, e, problems := parseAndBuild(content)
	if err := problems.Err(); err != nil {
		t.Fatalf("unexpected problems:\n%v", err)
	}
	return d, e
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

func TestExamplesAreValid(t *testing.T) {
	for name, content := range readExamples(t) {
		t.Run(name, func(t *testing.T) {
			_, e := parseValid(t, content)
			if len(e.Tenants) == 0 || len(e.Pools) == 0 {
				t.Errorf("got %d tenants and %d pools", len(e.Tenants), len(e.Pools))
			}
		})
	}
}

// buildLargeFile returns an estate with this number of tenants, each with its own domain and
// limits.
func buildLargeFile(tenants int) string {
	var b strings.Builder
	b.WriteString(base + "pools:\n")
	for i := range tenants/50 + 1 {
		fmt.Fprintf(&b, "  pool-%d:\n    instances: {instanceTypes: [t3a.large, m5.large]}\n    emptyTTL: 10m\n    limits: {cpu: \"100\", memory: 400Gi}\n", i)
	}
	b.WriteString("tenants:\n")
	for i := range tenants {
		fmt.Fprintf(&b, "  team-%d:\n    pool: pool-%d\n    access: [{group: devs-%d, role: operator}, {group: auditors, role: viewer}]\n"+
			"    domains: [team-%d.example.com, \"*.team-%d.example.com\"]\n    quota: {requests.cpu: \"10\", requests.memory: 20Gi}\n",
			i, i/50, i, i, i)
	}
	return b.String()
}

func BenchmarkBuild(b *testing.B) {
	d, _ := parseValid(b, buildLargeFile(5000))
	for b.Loop() {
		if _, problems := Build(d); len(problems) > 0 {
			b.Fatal(problems)
		}
	}
}
