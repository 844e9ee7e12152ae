package main

import (
	"bytes"
	"io/fs"
	"os"
	"regexp"
	"strings"
	"testing"
)

// directory is the chart's directory.
const directory = "../../charts/croft"

// written are the hand-written files.
var written = map[string]bool{
	"Chart.yaml": true, "templates/NOTES.txt": true, "templates/_helpers.tpl": true, "templates/declared.yaml": true,
}

var mark = regexp.MustCompile(`CROFT-(IMAGE|ROLE|AUTHENTICATION|SCHEDULE|PLUGINS|COPY|SOURCE)|zz-croft-slot`)

// TestChart fails if the chart has a file that is no longer generated, lacks one, or has
// another content than the code generates, or if a placeholder remains in it.
func TestChart(t *testing.T) {
	generated, err := renderChart()
	if err != nil {
		t.Fatal(err)
	}
	if err := fs.WalkDir(os.DirFS(directory), ".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && !written[path] && generated[path] == nil {
			t.Errorf("%s is generated no more: delete it", path)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	for path, want := range generated {
		got, err := fs.ReadFile(os.DirFS(directory), path)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not what the code generates: run `make generate` (%v)", path, err)
		}
		if left := mark.Find(want); left != nil {
			t.Errorf("%s has %s in it", path, left)
		}
	}
}

// TestDashboardHasNoRights fails if a template binds a role to the dashboard's ServiceAccount, directly
// or by a group of service accounts, or if its pods have a token.
func TestDashboardHasNoRights(t *testing.T) {
	files, err := fs.Glob(os.DirFS(directory), "templates/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	bindings := 0
	for _, file := range files {
		content, err := fs.ReadFile(os.DirFS(directory), file)
		if err != nil {
			t.Fatal(err)
		}
		for document := range strings.SplitSeq(string(content), "\n---\n") {
			if !regexp.MustCompile(`(?m)^kind: (Cluster)?RoleBinding$`).MatchString(document) {
				continue
			}
			bindings++
			for _, subject := range []string{"croft-dashboard", "system:serviceaccounts", "system:authenticated", "kind: Group"} {
				if strings.Contains(document, subject) {
					t.Errorf("%s has a binding with %s:\n%s", file, subject, document)
				}
			}
		}
	}
	if bindings < 5 {
		t.Errorf("the chart has only %d bindings", bindings)
	}
}

// TestSchema fails if the schema accepts a field that the CRD does not have, or contains an
// extension of Kubernetes.
func TestSchema(t *testing.T) {
	got := convertSchema(map[string]any{
		"type": "object", "nullable": true, "x-kubernetes-validations": []any{},
		"properties": map[string]any{
			"open":   map[string]any{"type": "object", "properties": map[string]any{}, "x-kubernetes-preserve-unknown-fields": true},
			"labels": map[string]any{"type": "object", "additionalProperties": map[string]any{"type": "string", "x-kubernetes-list-type": "set"}},
			"either": map[string]any{"anyOf": []any{map[string]any{"type": "integer"}, map[string]any{"type": "string"}}, "x-kubernetes-int-or-string": true},
		},
	})
	properties := got["properties"].(map[string]any)
	for what, isTrue := range map[string]bool{
		"it is closed":               got["additionalProperties"] == false,
		"it may be null":             len(got["type"].([]any)) == 2,
		"extensions are removed":     len(got) == 3,
		"open stays open":            properties["open"].(map[string]any)["additionalProperties"] == nil,
		"values of maps are checked": len(properties["labels"].(map[string]any)["additionalProperties"].(map[string]any)) == 1,
		"either stays either":        len(properties["either"].(map[string]any)["anyOf"].([]any)) == 2,
	} {
		if !isTrue {
			t.Errorf("not true: %s: %v", what, got)
		}
	}
}
