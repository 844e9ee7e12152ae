package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestWalk compares docs/contributing/architecture.md with the code: each file of its two walks contains
// the name that the walk gives, and neither walk may grow.
func TestWalk(t *testing.T) {
	content, err := os.ReadFile("../../docs/contributing/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(content), "\n## One tenant and one rule through the code\n")
	if !found {
		t.Fatal("there is no walk")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	tenant, rule, _ := strings.Cut(section, "The parts of a rule, file by file")
	stop := regexp.MustCompile(`(?m)^\d+\. \[(\S+)\]\(\.\./(\S+)\),\s+` + "`(\\w+)`")
	for _, walk := range []struct {
		name, text string
		most       int
	}{{"the tenant's", tenant, 12}, {"the rule's", rule, 6}} {
		stops := stop.FindAllStringSubmatch(walk.text, -1)
		if len(stops) == 0 || len(stops) > walk.most {
			t.Errorf("%s walk has %d files, want at most %d", walk.name, len(stops), walk.most)
		}
		for _, s := range stops {
			path, link, name := s[1], s[2], s[3]
			code, err := os.ReadFile(filepath.Join("../..", path))
			if err != nil || path != link {
				t.Errorf("%s walk, %s (%s): %v", walk.name, path, link, err)
			}
			if !regexp.MustCompile(`\b` + name + `\b`).Match(code) {
				t.Errorf("%s walk: %s does not speak of %s", walk.name, path, name)
			}
		}
	}
}
