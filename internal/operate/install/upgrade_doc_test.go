package install_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestUpgradeDocument fails if docs/reference/compatibility.md lacks the version of Kubernetes that the
// tests run on, or the chart's oldest version, or if CHANGELOG.md lacks upgrade notes from
// a release that TestUpgrade upgrades. Default tier.
func TestUpgradeDocument(t *testing.T) {
	text := func(path string) string {
		content, err := os.ReadFile(filepath.Join("..", "..", "..", path))
		if err != nil {
			t.Fatal(err)
		}
		return string(content)
	}
	find := func(path, pattern string) string {
		found := regexp.MustCompile(pattern).FindStringSubmatch(text(path))
		if found == nil {
			t.Fatalf("%s has no %s", path, pattern)
		}
		return found[1]
	}
	document := text("docs/reference/compatibility.md")
	tested := find("sandbox/go.mod", `(?m)^\s*k8s\.io/kubernetes (v1\.\d+\.\d+)`)
	minor := regexp.MustCompile(`1\.\d+`).FindString(tested)
	oldest := find("charts/croft/Chart.yaml", `kubeVersion: ">=(1\.\d+)\.`)
	for _, row := range []string{
		"| " + minor + " | API server | yes: all tests run on " + tested,
		"| " + minor + " | Gatekeeper | yes: on " + tested,
		"| " + oldest + " to ",
	} {
		if !strings.Contains(document, row) {
			t.Errorf("docs/reference/compatibility.md has no row %q", row)
		}
	}
	kept, err := filepath.Glob(filepath.Join("..", "..", "test", "e2e", "testdata", "releases", "v*"))
	if err != nil || len(kept) == 0 {
		t.Fatalf("no releases are kept: %v", err)
	}
	notes := text("CHANGELOG.md")
	for _, release := range kept {
		if version := filepath.Base(release); !strings.Contains(notes, "From "+version+":") {
			t.Errorf("CHANGELOG.md has no upgrade notes from %s", version)
		}
	}
}
