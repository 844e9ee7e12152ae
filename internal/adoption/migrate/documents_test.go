package migrate_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"sigs.k8s.io/yaml"

	"croft.dev/croft/internal/adoption/migrate"
	"croft.dev/croft/internal/adoption/migrate/draft"
	"croft.dev/croft/internal/adoption/migrate/source"
	"croft.dev/croft/internal/declare/document"
)

var update = flag.Bool("update", false, "rewrite docs/reference/migrate/examples")

// readAll reads the files of a directory, named by their relative paths.
func readAll(t testing.TB, dir string) ([]*source.Object, document.Problems) {
	t.Helper()
	var (
		all      []*source.Object
		problems document.Problems
	)
	files := os.DirFS(dir)
	err := fs.WalkDir(files, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".yaml" {
			return err
		}
		data, err := fs.ReadFile(files, path)
		if err != nil {
			return err
		}
		objects, wrong := source.Parse(path, data)
		all, problems = append(all, objects...), append(problems, wrong...)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all, problems
}

// TestDocuments migrates the manifests of three published set-ups, without edits, and
// compares the results with the reviewed ones.
func TestDocuments(t *testing.T) {
	for _, document := range []string{"000", "001", "002"} {
		t.Run(document, func(t *testing.T) {
			objects, problems := readAll(t, filepath.Join("testdata", "documents", document))
			r := migrate.Migrate(objects, problems, draft.Options{})
			expectAccounted(t, objects, r)
			if _, wrong := r.File.Declaration(); len(wrong) > 0 {
				t.Errorf("croft.yaml is not what croft check takes: %v", wrong)
			}
			file, err := r.File.YAML()
			if err != nil {
				t.Fatal(err)
			}
			files := map[string][]byte{"croft.yaml": file, "report.md": []byte(r.Markdown())}
			var classes bytes.Buffer
			for _, m := range r.Manifests {
				data, err := yaml.Marshal(m.Object)
				if err != nil {
					t.Fatal(err)
				}
				classes.WriteString("---\n" + string(data))
			}
			if classes.Len() > 0 {
				files["nodeclasses.yaml"] = classes.Bytes()
			}
			for name, got := range files {
				assertGolden(t, filepath.Join("../../../docs/reference/migrate/examples", document, name), got)
			}
		})
	}
}

// TestCopies migrates the objects that Capsule and HNC copy into namespaces, and compares the results with the
// reviewed ones.
func TestCopies(t *testing.T) {
	for _, tool := range []string{"capsule", "hnc"} {
		t.Run(tool, func(t *testing.T) {
			dir := filepath.Join("testdata", "copies", tool)
			objects, problems := readAll(t, filepath.Join(dir, "input"))
			r := migrate.Migrate(objects, problems, draft.Options{ClusterName: "demo"})
			expectAccounted(t, objects, r)
			if _, wrong := r.File.Declaration(); len(wrong) > 0 {
				t.Errorf("croft check refuses croft.yaml: %v", wrong)
			}
			file, err := r.File.YAML()
			if err != nil {
				t.Fatal(err)
			}
			assertGolden(t, filepath.Join(dir, "croft.yaml"), file)
			assertGolden(t, filepath.Join(dir, "report.md"), []byte(r.Markdown()))
		})
	}
}

func assertGolden(t *testing.T, path string, got []byte) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("croft migrate gives something else than %s; if it is meant, run with -update and look at the diff", path)
	}
}

// expectAccounted fails if an input value is in no finding, or in more than one.
func expectAccounted(t testing.TB, objects []*source.Object, r *migrate.Result) {
	t.Helper()
	values := 0
	for _, o := range objects {
		values += countLeaves(o.Content)
	}
	found := 0
	for _, f := range r.Findings {
		found += f.Leaves
		if f.Outcome != source.Kept && f.Message == "" {
			t.Errorf("%s %s is %s, without a reason", f.Object, f.Field, f.Outcome)
		}
		if f.Outcome == source.Kept && len(f.To) == 0 {
			t.Errorf("%s %s is kept, without a place", f.Object, f.Field)
		}
	}
	if found != values {
		t.Errorf("%d values were read, and %d accounted for", values, found)
	}
}

func countLeaves(v any) int {
	n := 0
	switch v := v.(type) {
	case map[string]any:
		for _, inner := range v {
			n += countLeaves(inner)
		}
	case []any:
		for _, inner := range v {
			n += countLeaves(inner)
		}
	}
	return max(n, 1)
}

func decodeYAML(t testing.TB, data []byte) map[string]any {
	t.Helper()
	content := map[string]any{}
	if err := yaml.Unmarshal(data, &content); err != nil {
		t.Fatal(err)
	}
	return content
}

// formatFlow returns content on one line, with its keys sorted.
func formatFlow(t testing.TB, content map[string]any) string {
	t.Helper()
	data, err := json.Marshal(content)
	if err != nil {
		t.Fatal(err)
	}
	return string(data) + "\n"
}
