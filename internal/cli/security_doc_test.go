package cli_test

import (
	"encoding/json"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestSecurityDoc compares docs/explanation/security.md with the code: each named attack and
// test exists, and each vulnerability has a decision and a link with its own number.
func TestSecurityDoc(t *testing.T) {
	const doc = "docs/explanation/security.md"
	content := readDoc(t, doc)
	_, others, found := strings.Cut(content, "\n## What happened to others\n")
	if !found {
		t.Fatalf("%s has no section on others", doc)
	}
	attacks, references := listAttacks(t)
	tests := listTestNames(t)
	row := regexp.MustCompile(`(?m)^\| (.+) \| (.+) \| (.+) \|$`)
	stopper := regexp.MustCompile("`([^`]+)`")
	vulnerability := regexp.MustCompile(`\[(CVE-\d{4}-\d+|GHSA-[-0-9a-z]+)\]\(https://\S+?/((?:CVE|GHSA)-[-0-9a-z]+)\)`)
	rows := 0
	for _, cells := range row.FindAllStringSubmatch(others, -1) {
		which, here := cells[1], cells[3]
		if which == "vulnerability" {
			continue
		}
		rows++
		stoppers := stopper.FindAllStringSubmatch(here, -1)
		if len(stoppers) == 0 && !strings.Contains(here, "**not promised**") && !strings.Contains(here, "**Not promised**") {
			t.Errorf("%s: %s is neither stopped by an attack or a test nor not promised", doc, which)
		}
		for _, s := range stoppers {
			if name := s[1]; !attacks[name] && !tests[name] {
				t.Errorf("%s: %s: there is no attack and no test %s", doc, which, name)
			}
		}
		for _, link := range vulnerability.FindAllStringSubmatch(which, -1) {
			if link[1] != link[2] {
				t.Errorf("%s: %s links to %s", doc, link[1], link[2])
			}
		}
	}
	if rows == 0 {
		t.Errorf("%s has no table of vulnerabilities", doc)
	}
	for _, reference := range references {
		if !strings.Contains(others, "["+reference+"]") {
			t.Errorf("%s does not name %s, which an attack is known from", doc, reference)
		}
	}
}

// listAttacks returns the names of the attacks that croft verify lists for a Platform
// with every feature that has attacks of its own. It also returns the CVEs that they refer
// to.
func listAttacks(t *testing.T) (names map[string]bool, cves []string) {
	t.Helper()
	file := writeConfig(t, "platform: {clusterName: demo, nodeClass: {kwok: {}}, elevation: {approvers: [approvers]}}\n"+
		"pools: {apps: {}}\ntenants: {shop: {pool: apps}}\n")
	status, stdout, stderr := runCroft(t, "", "verify", "--list", "-f", file, "-o", "json")
	if status != 0 {
		t.Fatalf("status %d: %s", status, stderr)
	}
	var list struct {
		Attacks []struct {
			Name, Kind string
			References []string
		}
	}
	if err := json.Unmarshal([]byte(stdout), &list); err != nil {
		t.Fatal(err)
	}
	names, known := map[string]bool{}, map[string]bool{}
	for _, a := range list.Attacks {
		if a.Kind != "attack" {
			continue
		}
		names[a.Name] = true
		for _, reference := range a.References {
			if strings.HasPrefix(reference, "CVE-") {
				known[reference] = true
			}
		}
	}
	return names, slices.Sorted(maps.Keys(known))
}

// listTestNames returns the names of croft's tests.
func listTestNames(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T\)`)
	err := filepath.WalkDir("..", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		code, err := os.ReadFile(path)
		for _, name := range declared.FindAllSubmatch(code, -1) {
			names[string(name[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func readDoc(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("../..", path))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
