package page_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/net/html"
	"sigs.k8s.io/yaml"

	"croft.dev/croft/internal/dashboard/page"
	"croft.dev/croft/internal/diagnose/why"
)

var (
	// verb matches the place of a name or a number in a text.
	verb = regexp.MustCompile(`%(\[\d\])?[a-z]`)
	word = regexp.MustCompile(`[A-Za-z]{2,}`)
)

// TestGerman expects one German text for each text of the pages, and no others. Pages have no texts
// that are not in the catalogue.
func TestGerman(t *testing.T) {
	german, used := readGerman(t), listKeys(t)
	for key, file := range used {
		if german[key] == "" {
			t.Errorf("%s: german.yaml has no %q", file, key)
		}
	}
	for key, text := range german {
		if used[key] == "" {
			t.Errorf("german.yaml: no page has %q", key)
		}
		if !slices.Equal(verb.FindAllString(key, -1), verb.FindAllString(text, -1)) {
			t.Errorf("german.yaml: %q and %q have other verbs", key, text)
		}
	}
}

func readGerman(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("german.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var german map[string]string
	if err := yaml.UnmarshalStrict(text, &german); err != nil {
		t.Fatal(err)
	}
	return german
}

// listKeys returns the English texts of the pages, with a file in which each of them is.
func listKeys(t *testing.T) map[string]string {
	t.Helper()
	keys := map[string]string{}
	add := func(file, key string) {
		if word.MatchString(verb.ReplaceAllString(key, "")) {
			keys[key] = file
		}
	}
	for _, tab := range (page.Page{Namespace: "x"}).Tabs() {
		add("page.go", tab.Name)
	}
	for _, v := range []why.Verdict{why.Good, why.Bad, why.Waiting, why.Hidden} {
		add("story.go", string(v))
	}
	for _, pattern := range []string{"*.go", "../server/*.go", "templates/*.html"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("no files %s: %v", pattern, err)
		}
		for _, file := range files {
			switch {
			case strings.HasSuffix(file, ".html"):
				listTemplateKeys(t, file, add)
			case !strings.HasSuffix(file, "_test.go"):
				listGoKeys(t, file, add)
			}
		}
	}
	return keys
}

func listTemplateKeys(t *testing.T, file string, add func(file, key string)) {
	t.Helper()
	source, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, found := range regexp.MustCompile(`\bt "([^"]+)"`).FindAllStringSubmatch(string(source), -1) {
		add(file, found[1])
	}
	for _, text := range regexp.MustCompile(`(?s)\{\{.*?\}\}|<[^>]*>`).Split(string(source), -1) {
		if word.MatchString(strings.ReplaceAll(text, "croft", "")) {
			t.Errorf("%s: %q: write {{t \"…\"}}", file, text)
		}
	}
}

// listGoKeys adds the arguments of T and listHeads. The compiler accepts no other texts of pages, except in
// the cells of tables.
func listGoKeys(t *testing.T, file string, add func(file, key string)) {
	t.Helper()
	tree, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(tree, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			args := n.Args
			switch findName(n.Fun) {
			case "T":
				args = args[:1]
			case "listHeads":
			default:
				return true
			}
			for _, arg := range args {
				if key := joinLiterals(arg); key != "" {
					add(file, key)
				} else if file != "language.go" {
					t.Errorf("%s: a key that is no literal", file)
				}
			}
		case *ast.KeyValueExpr:
			// The names of two fields of TenantRules are data.
			if text := joinLiterals(n.Value); findName(n.Key) == "Text" && word.MatchString(text) && text != "pools" && text != "egress" {
				t.Errorf("%s: the text %q of a cell: write PageText: T(…)", file, text)
			}
		}
		return true
	})
}

func findName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	default:
		return ""
	}
}

// joinLiterals returns the literals of a text, or of a sum of texts.
func joinLiterals(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, _ := strconv.Unquote(e.Value)
		return text
	case *ast.BinaryExpr:
		return joinLiterals(e.X) + joinLiterals(e.Y)
	default:
		return ""
	}
}

// stayEnglish matches the names, and the texts of Kubernetes and of croft's commands, on the pages of newPages.
var stayEnglish = regexp.MustCompile(`^(?s:` + strings.Join([]string{
	"croft|croft-isolation|operator|metadata|/.*", "(?:pod|Ingress|HTTPRoute|NodeClaim|nodeclaim|ServiceAccount)[ /]x.*",
	// states and conditions
	"True|False|Unknown|Pending|Active|Refused|NotSeenYet|Launched=Unknown", "Warn|DenyNewNodes|DenyNewPods|800 EUR",
	// croft why, doctor, reach and me
	"pod|node|" + why.IfItLasts + "|`croft why .*", "allowed.*|denied.*",
	"pools|egress|domains|issuers|any.*|.*Classes|images from|Service types|Flux sources at",
	// croft try
	`\d of \d objects.*|\d warning|refused|warned|x, rule x|x of x|line \d: x.*`,
}, "|") + `)$`)

// TestGermanPages expects no English text on a German page.
func TestGermanPages(t *testing.T) {
	same := map[string]bool{}
	for key, text := range readGerman(t) {
		if key == text {
			same[verb.ReplaceAllString(text, "x")] = true
		}
	}
	pages := newPages("x")
	pages["logged out"] = page.Page{Title: page.T("Logged out"), Heading: page.T("Logged out"), Body: page.LoggedOut{ProviderLink: "/x"}}
	for name, p := range pages {
		p.Live = true
		english := listTexts(t, p)
		p.Language = page.German
		for text := range listTexts(t, p) {
			if strings.Contains(text, "%!") {
				t.Errorf("%s: %q has other arguments than its text", name, text)
			}
			if english[text] && word.MatchString(text) && !same[text] && !stayEnglish.MatchString(text) {
				t.Errorf("%s: %q is English", name, text)
			}
		}
	}
}

// listTexts returns the texts of a page, and its attributes that contain texts.
func listTexts(t *testing.T, p page.Page) map[string]bool {
	t.Helper()
	source, err := page.Render(p)
	if err != nil {
		t.Fatal(err)
	}
	if lang := `<html lang="` + string(p.Lang()) + `">`; !strings.Contains(string(source), lang) {
		t.Errorf("no %s", lang)
	}
	tree, err := html.Parse(strings.NewReader(string(source)))
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]bool{}
	for n := range tree.Descendants() {
		if n.Type == html.TextNode && n.Parent.Data != "code" && n.Parent.Data != "time" {
			texts[strings.TrimSuffix(strings.TrimSpace(n.Data), " · croft")] = true
		}
		for _, a := range n.Attr {
			if a.Key == "aria-label" || strings.HasPrefix(a.Key, "data-") {
				texts[a.Val] = true
			}
		}
	}
	return texts
}

// TestChooseLanguage expects the language that the browser prefers, and English for other languages.
func TestChooseLanguage(t *testing.T) {
	for header, want := range map[string]page.Language{
		"": page.English, "de": page.German, "de-CH,fr;q=0.5": page.German, "fr-FR,de;q=0.9,en;q=0.8": page.German, "fr": page.English, "*": page.English,
		"en-GB,de;q=0.9": page.English, "de;q=0.1,en;q=0.2": page.English, "de;q=0": page.English, "\x00": page.English, strings.Repeat("de-", 2000): page.English,
	} {
		if got := page.ChooseLanguage(header); got != want {
			t.Errorf("Accept-Language %.30q: %s, want %s", header, got, want)
		}
	}
}
