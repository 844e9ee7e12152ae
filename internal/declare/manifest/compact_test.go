package manifest

import (
	"os"
	"strings"
	"testing"
)

// TestKeysAreDocumented fails if croft.yaml has a key that is missing in the reference, or if
// the reference has a key that would be refused.
func TestKeysAreDocumented(t *testing.T) {
	reference, err := os.ReadFile("../../../docs/reference/api.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(reference), "| Key | Holds |\n| --- | --- |\n")
	table, _, _ = strings.Cut(table, "\n\n")
	documented := map[string]bool{}
	for line := range strings.Lines(table) {
		key, _, _ := strings.Cut(strings.TrimPrefix(line, "| `"), "`")
		documented[key] = true
	}
	known := map[string]bool{platformKey: true}
	for key := range sections {
		known[key] = true
	}
	for key := range known {
		if !documented[key] {
			t.Errorf("docs/reference/api.md does not list the key %s of croft.yaml", key)
		}
	}
	for key := range documented {
		if !known[key] {
			t.Errorf("docs/reference/api.md lists %q, which croft.yaml may not have", key)
		}
	}
}
