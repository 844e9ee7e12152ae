package doctor

import (
	"os"
	"strings"
	"testing"
)

// TestDocumented fails if docs/reference/troubleshooting.md lacks a check.
func TestDocumented(t *testing.T) {
	docs, err := os.ReadFile("../../../docs/reference/troubleshooting.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range Checks() {
		if row := "| `" + c.Name + "` | " + c.Summary; !strings.Contains(string(docs), row) {
			t.Errorf("docs/reference/troubleshooting.md has no %q: run `make generate`", row)
		}
	}
}
