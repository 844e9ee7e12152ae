package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestDecisions reads decisions from structs, and expects an error that names the field if one is
// missing or wrong.
func TestDecisions(t *testing.T) {
	for name, c := range map[string]struct{ fields, want string }{
		"one decision for each field": {`
			// +croft:change=kept | new pods
			Pool string ` + "`json:\"pool\"`" + `
			// A is decided below.
			A *Below ` + "`json:\"a,omitempty\"`" + `
			Embedded ` + "`json:\",inline\"`",
			"pool: kept | new pods; a.b: restart; c: kept | new pods"},
		"a decision for all fields below": {`
			// +croft:change=kept
			A Below ` + "`json:\"a\"`", "a: kept"},
		"no decision": {`
			// +croft:tenants:shown=another one
			Pool string ` + "`json:\"pool\"`",
			"a_types.go:4:4: the field pool of Spec: write one marker +croft:change=TEXT above it; it has 0"},
		"two decisions": {`
			// +croft:change=kept
			// +croft:change=restart
			Pool string ` + "`json:\"pool\"`",
			"a_types.go:5:4: the field pool of Spec: write one marker +croft:change=TEXT above it; it has 2"},
		"an unknown marker": {`
			// +croft:changes=kept
			Pool string ` + "`json:\"pool\"`",
			"a_types.go:4:4: the field pool of Spec: there is no marker +croft:changes; the markers are +croft:tenants:shown, +croft:tenants:hidden, +croft:change, +croft:exception"},
		"no text": {`
			// +croft:change=
			Pool string ` + "`json:\"pool\"`",
			"a_types.go:4:4: the field pool of Spec: the marker +croft:change needs a text"},
	} {
		t.Run(name, func(t *testing.T) {
			directory := t.TempDir()
			content := "package a\ntype Spec struct {" + c.fields + `
				}
				type Below struct {
					// +croft:change=restart
					B bool ` + "`json:\"b\"`" + `
				}
				type Embedded struct {
					// +croft:change=kept | new pods
					C bool ` + "`json:\"c\"`" + `
				}`
			if err := os.WriteFile(filepath.Join(directory, "a_types.go"), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			types, err := parseTypes(directory)
			if err != nil {
				t.Fatal(err)
			}
			decisions, err := types.listDecisions("Spec", "", "croft:change")
			var got []string
			for _, d := range decisions {
				got = append(got, d.path+": "+d.text)
			}
			if err != nil {
				got = []string{strings.TrimPrefix(err.Error(), directory+"/")}
			}
			if strings.Join(got, "; ") != c.want {
				t.Errorf("got  %s\nwant %s", strings.Join(got, "; "), c.want)
			}
		})
	}
}

// TestMergeRows puts fields with the same text in one row.
func TestMergeRows(t *testing.T) {
	got := formatTable([]string{"field", "pods", "people"}, mergeRows([]decision{
		{path: "a", text: "kept | new"}, {path: "b", text: "restart"}, {path: "c", text: "kept | new"},
	}))
	want := "| field | pods | people |\n|---|---|---|\n| `a`, `c` | kept | new |\n| `b` | restart | |\n"
	if got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}
