package document

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// root is the repository's root.
const root = "../../.."

// notWritten are pages that commands write and that the repository does not have yet.
var notWritten = map[string]string{
	"docs/reference/versions.md": "make test-versions writes it",
}

// TestLinks fails if a relative link of a document leads to no file of the repository, or its
// anchor to no heading of that file.
func TestLinks(t *testing.T) {
	for _, page := range listPages(t) {
		for _, link := range findLinks(readPage(t, page)) {
			if strings.Contains(link, "://") || strings.HasPrefix(link, "mailto:") {
				continue
			}
			path, anchor, _ := strings.Cut(link, "#")
			target := page
			if path != "" {
				target = filepath.ToSlash(filepath.Join(filepath.Dir(page), path))
			}
			if err := checkTarget(t, target, anchor); err != nil {
				t.Errorf("%s: the link %s: %v", page, link, err)
			}
		}
	}
}

// TestNamedPages fails if a page that code, a script or a comment names, such as
// docs/explanation/walls.md#bounds, does not exist.
func TestNamedPages(t *testing.T) {
	for _, file := range listFiles(t) {
		content := readPage(t, file)
		for _, name := range findNames(content) {
			path, anchor, _ := strings.Cut(name, "#")
			if err := checkTarget(t, path, anchor); err != nil {
				t.Errorf("%s names %s: %v", file, name, err)
			}
		}
	}
}

// TestNamedTests fails if a test that a document, a script or a comment names does not exist.
func TestNamedTests(t *testing.T) {
	files := append(listFiles(t), listPages(t)...)
	exists := map[string]bool{}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			for _, name := range findFirstGroups(testFunction, readPage(t, file)) {
				exists[name] = true
			}
		}
	}
	for _, file := range files {
		content := readPage(t, file)
		if filepath.Ext(file) == ".go" {
			content = strings.Join(findFirstGroups(goComment, content), "\n")
		}
		for _, name := range findFirstGroups(testName, content) {
			if !exists[name] {
				t.Errorf("%s names %s, and there is no such test", file, name)
			}
		}
	}
}

// TestAnchors compares anchors with the ones that GitHub gives to the headings.
func TestAnchors(t *testing.T) {
	page := "# `croft why`: one object\n```\n# no heading\n```\n## Not promised\n## Not promised\n## [a link](b.md), 1.36_x – ü\n"
	for _, want := range []string{"croft-why-one-object", "not-promised", "not-promised-1", "a-link-136_x--ü"} {
		if !listAnchors(page)[want] {
			t.Errorf("no anchor %s in %v", want, listAnchors(page))
		}
	}
	if n := len(listAnchors(page)); n != 4 {
		t.Errorf("%d anchors, want 4: %v", n, listAnchors(page))
	}
}

// checkTarget returns an error if the repository lacks the file, or the file lacks the anchor.
func checkTarget(t *testing.T, path, anchor string) error {
	t.Helper()
	if notWritten[path] != "" {
		return nil
	}
	if _, err := os.Stat(filepath.Join(root, path)); err != nil {
		return fmt.Errorf("there is no %s", path)
	}
	if anchor != "" && !listAnchors(readPage(t, path))[anchor] {
		return fmt.Errorf("%s has no heading #%s", path, anchor)
	}
	return nil
}

var (
	testFunction = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)[A-Z]\w*)\(`)
	testName     = regexp.MustCompile(`\b((?:Test|Fuzz)[A-Z]\w+)`)
	goComment    = regexp.MustCompile(`(?m)//(.*)$`)

	fence = regexp.MustCompile("(?ms)^ *```.*?^ *```")
	// link does not match regular expressions of the API reference, such as [a-z]([-a-z]*[a-z])?.
	link    = regexp.MustCompile(`\]\(([^)\s\[*]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ +(.+?) *$`)
	linked  = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	dropped = regexp.MustCompile(`[^\pL\pM\pN_ -]`)
	// named is a page's path from the root, also after a variable of a script or from a test's
	// directory, and not within a URL.
	named = regexp.MustCompile(`(?:^|[^\w./)-]|\$\w+/|\)/|(?:\.\./)+)(docs/[\w/.-]+\.(?:md|svg)(?:#[\w-]+)?)`)
)

// findLinks returns the targets of a document's links, outside of blocks of code.
func findLinks(page string) []string {
	return findFirstGroups(link, fence.ReplaceAllString(page, ""))
}

// findNames returns the pages that a file names by their paths.
func findNames(content string) []string {
	// A URL's path has the same form.
	return findFirstGroups(named, regexp.MustCompile(`https?://\S+`).ReplaceAllString(content, ""))
}

func findFirstGroups(pattern *regexp.Regexp, text string) []string {
	var groups []string
	for _, match := range pattern.FindAllStringSubmatch(text, -1) {
		groups = append(groups, match[1])
	}
	return groups
}

// listAnchors returns the anchors of a document's headings. GitHub numbers repeated headings.
func listAnchors(page string) map[string]bool {
	anchors := map[string]bool{}
	count := map[string]int{}
	for _, text := range findFirstGroups(heading, fence.ReplaceAllString(page, "")) {
		text = linked.ReplaceAllString(text, "$1")
		anchor := strings.ReplaceAll(dropped.ReplaceAllString(strings.ToLower(text), ""), " ", "-")
		if n := count[anchor]; n > 0 {
			anchors[fmt.Sprintf("%s-%d", anchor, n)] = true
		} else {
			anchors[anchor] = true
		}
		count[anchor]++
	}
	return anchors
}

// listPages returns the paths of all documents: docs, and the pages of the root.
func listPages(t *testing.T) []string {
	t.Helper()
	pages, err := filepath.Glob(filepath.Join(root, "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for i := range pages {
		pages[i] = filepath.Base(pages[i])
	}
	return append(pages, walkFiles(t, "docs", func(path string) bool { return filepath.Ext(path) == ".md" })...)
}

// listFiles returns the paths of all files that may name a page, except for the objects of
// earlier releases.
func listFiles(t *testing.T) []string {
	t.Helper()
	files := []string{"Makefile"}
	for _, dir := range []string{".github", "api", "charts", "cmd", "docs", "examples", "hack", "internal", "monitoring", "sandbox"} {
		files = append(files, walkFiles(t, dir, func(path string) bool {
			switch filepath.Ext(path) {
			case ".go", ".json", ".md", ".sh", ".tmpl", ".txt", ".yaml", ".yml":
				return !strings.Contains(path, "testdata/releases/") && !strings.HasPrefix(path, "hack/internal/document/")
			}
			return false
		})...)
	}
	return files
}

// walkFiles returns the paths, from the root, of a directory's files.
func walkFiles(t *testing.T, dir string, include func(path string) bool) []string {
	t.Helper()
	var files []string
	err := fs.WalkDir(os.DirFS(root), dir, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && entry.Name() == "node_modules":
			return fs.SkipDir
		case !entry.IsDir() && include(path):
			files = append(files, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func readPage(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
