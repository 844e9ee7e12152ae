package internal

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const prefix = "croft.dev/croft/internal/"

// Each directory here is a group of packages. Its package comment lists the groups that its
// packages may import, below them in the architecture. Tests may import any group, and so may
// packages whose name ends in "test", such as operatortest: only tests may import them.
func TestGroupsImportOnlyGroupsBelow(t *testing.T) {
	allowed := map[string][]string{}
	for _, group := range listGroups(t) {
		allowed[group] = readAllowed(t, group)
	}
	assertNoCycle(t, allowed)
	for group, others := range allowed {
		used := map[string]bool{}
		for file, imports := range parseImports(t, group) {
			for _, imported := range imports {
				other, _, _ := strings.Cut(strings.TrimPrefix(imported, prefix), "/")
				if !strings.HasPrefix(imported, prefix) {
					continue
				}
				if isForTests(path.Base(imported)) {
					t.Errorf("%s imports %s: only tests may import it", file, imported)
				}
				if other == group {
					continue
				}
				used[other] = true
				if !slices.Contains(others, other) {
					t.Errorf("%s imports %s: the package comment of internal/%s allows only %s",
						file, imported, group, strings.Join(others, ", "))
				}
			}
		}
		for _, other := range others {
			if !used[other] {
				t.Errorf("internal/%s: the package comment allows %s, which no package imports: remove it", group, other)
			}
		}
	}
}

func listGroups(t *testing.T) []string {
	t.Helper()
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	var groups []string
	for _, entry := range entries {
		if entry.IsDir() {
			groups = append(groups, entry.Name())
		}
	}
	return groups
}

// readAllowed reads the sentence "It may import: a, b." of a group's package comment.
func readAllowed(t *testing.T, group string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(group, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.PackageClauseOnly|parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		text := strings.Join(strings.Fields(file.Doc.Text()), " ")
		if _, list, found := strings.Cut(text, "It may import: "); found {
			list, _, _ = strings.Cut(list, ".")
			return strings.Split(list, ", ")
		}
		if strings.Contains(text, "It imports no other group.") {
			return nil
		}
	}
	t.Fatalf("internal/%s: no package comment has \"It may import: …\" or \"It imports no other group.\"", group)
	return nil
}

// isForTests reports whether only tests may import a package or group.
func isForTests(name string) bool { return strings.HasSuffix(name, "test") }

// parseImports returns the imports of a group's files, without tests and packages for tests.
func parseImports(t *testing.T, group string) map[string][]string {
	t.Helper()
	imports := map[string][]string{}
	err := filepath.WalkDir(group, func(name string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() && name != group && isForTests(entry.Name()) {
			return fs.SkipDir
		}
		if err != nil || entry.IsDir() || path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, spec := range file.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			imports[name] = append(imports[name], imported)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return imports
}

// assertNoCycle fails if a group may import a group that may import it, directly or not.
func assertNoCycle(t *testing.T, allowed map[string][]string) {
	t.Helper()
	done := map[string]bool{}
	var visit func(group string, above []string)
	visit = func(group string, above []string) {
		if slices.Contains(above, group) {
			t.Fatalf("groups import each other: %s", strings.Join(append(above, group), " → "))
		}
		if done[group] {
			return
		}
		for _, other := range allowed[group] {
			visit(other, append(slices.Clone(above), group))
		}
		done[group] = true
	}
	for group := range allowed {
		visit(group, nil)
	}
}
