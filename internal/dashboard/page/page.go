// Package page renders the dashboard's pages as HTML. Pages contain no inline scripts and styles, and
// load nothing but their style sheet and their script. They need no script, but with it they show
// changes and the viewer's time zone. The package does no I/O.
package page

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"html/template"
	"net/url"
	"regexp"
	"strings"
	"sync"

	"croft.dev/croft/internal/declare/wording"
)

//go:embed templates/*.html
var templates embed.FS

// Style is the style sheet, which the server serves at StylePath.
//
//go:embed style.css
var Style []byte

// Script is the script, which the server serves at ScriptPath.
//
//go:embed page.js
var Script []byte

// The paths of the style sheet and of the script.
const (
	StylePath  = "/assets/style.css"
	ScriptPath = "/assets/page.js"
)

// Page is a page of the dashboard.
type Page struct {
	// Title is the title of the window, and Heading the heading of the page.
	Title, Heading Text
	// User is the user's name at the cluster; empty before the login.
	User string
	// CSRF is the text that forms repeat.
	CSRF string
	// Namespace is the namespace that the page shows, if it shows one.
	Namespace string
	// Tab is the page's name among the pages of a namespace.
	Tab string
	// Commands print the same data in a terminal.
	Commands []string
	// Language is the language of the page; English by default.
	Language Language
	// Live means that the script updates the page.
	Live bool
	// Body is the content.
	Body Body
}

// Body is the content of a page: Sections, Story, Confirmation, Command, Try, Login, LoggedOut or Message.
type Body interface{ templateName() string }

// Message is a page that only consists of a text.
type Message struct{ Text Text }

// Login is the login page.
type Login struct {
	// Next is the path of the page after the login.
	Next string
	// Problem explains why the last login failed; empty before the first.
	Problem Text
	// ProviderLink is the path that begins a login at the identity provider; empty without one.
	ProviderLink string
	// NoTokens means that users cannot log in with a token.
	NoTokens bool
}

// LoggedOut is the page after a logout, for users who are still logged in at the identity provider.
type LoggedOut struct {
	// ProviderLink is the URL at which the provider ends the user's session.
	ProviderLink string
}

func (Message) templateName() string   { return "message" }
func (Login) templateName() string     { return "login" }
func (LoggedOut) templateName() string { return "loggedout" }
func (Sections) templateName() string  { return "sections" }
func (Story) templateName() string     { return "story" }

// Tabs returns the pages of the namespace.
func (p Page) Tabs() []Tab {
	if p.Namespace == "" {
		return nil
	}
	tabs := make([]Tab, 0, len(tabNames))
	for _, name := range tabNames {
		path := Link("namespaces", p.Namespace)
		if name != TabOverview {
			path = Link("namespaces", p.Namespace, strings.ToLower(name))
		}
		tabs = append(tabs, Tab{Name: name, Path: path, Here: name == p.Tab})
	}
	return tabs
}

// Tab is a link to one page of a namespace.
type Tab struct {
	Name, Path string
	// Here means that the page is open.
	Here bool
}

// The pages of a namespace.
const (
	TabOverview  = "Overview"
	TabWorkloads = "Workloads"
	TabJobs      = "Jobs"
	TabNetwork   = "Network"
	TabHosts     = "Hosts"
	TabQuota     = "Quota"
	TabCost      = "Cost"
	TabTry       = "Try"
	TabAccess    = "Access"
)

var tabNames = []string{TabOverview, TabWorkloads, TabJobs, TabNetwork, TabHosts, TabQuota, TabCost, TabAccess, TabTry}

// Link returns the path of a page from its segments. html/template alone would keep slashes and
// question marks in a name.
func Link(segments ...string) string {
	var b strings.Builder
	for _, s := range segments {
		b.WriteString("/" + url.PathEscape(clip(s)))
	}
	return b.String()
}

// longest is the maximum length of a text in bytes, so that one object cannot fill a page.
const longest = 4000

// clip truncates a long text.
func clip(text string) string {
	if len(text) <= longest {
		return text
	}
	return cutText(text, longest) + "…"
}

// isWeb reports whether documentation is at an address outside of the repository.
func isWeb(link string) bool { return strings.HasPrefix(link, "https://") }

// parsed are the templates of the pages, by their language and the name of their body. Other commands of croft do not
// need them.
var parsed = sync.OnceValue(func() map[Language]map[string]*template.Template {
	byLanguage := map[Language]map[string]*template.Template{}
	for _, l := range languages {
		byLanguage[l] = parseTemplates(l, "sections", "story", "confirmation", "try", "login", "loggedout", "message", "elevations", "cost", "command")
	}
	return byLanguage
})

func parseTemplates(l Language, bodies ...string) map[string]*template.Template {
	all := template.Must(template.New("").Funcs(template.FuncMap{
		"clip": clip, "isWeb": isWeb, "splitTimes": splitTimes, "datetime": formatDatetime, "shortenLabel": shortenLabel, "t": newTranslator(l),
		"commandSeconds": func() int { return CommandSeconds }, "outputKiB": func() int { return LongestOutput >> 10 },
	}).ParseFS(templates, "templates/*.html"))
	byBody := map[string]*template.Template{}
	for _, body := range bodies {
		page := template.Must(all.Clone())
		template.Must(page.New("content").Parse(`{{template "` + body + `" .}}`))
		byBody[body] = page
	}
	return byBody
}

// Render returns the page. html/template escapes each text for its place. Then control characters
// and characters that change the direction of text are escaped in the whole page: the
// templates contain none.
func Render(p Page) ([]byte, error) {
	content, err := execute(p, "main", p)
	if err != nil {
		return nil, err
	}
	out, err := execute(p, "layout", struct {
		Page
		StylePath, ScriptPath, Version string
		Main                           template.HTML
	}{p, StylePath, ScriptPath, hashContent(content), template.HTML(content)})
	return []byte(wording.EscapeControls(out)), err
}

// Version returns a text that changes with the content of the page, but not with the age of its objects.
func Version(p Page) (string, error) {
	content, err := execute(p, "main", p)
	return hashContent(content), err
}

func execute(p Page, name string, data any) (string, error) {
	var out bytes.Buffer
	if err := parsed()[p.Lang()][p.Body.templateName()].ExecuteTemplate(&out, name, data); err != nil {
		return "", fmt.Errorf("render the page %s: %w", p.Title.In(English), err)
	}
	return out.String(), nil
}

// timeText matches the texts of times and ages, which their attributes determine.
var timeText = regexp.MustCompile(`(<time[^>]*>)[^<]*`)

func hashContent(content string) string {
	hash := sha256.Sum256([]byte(timeText.ReplaceAllString(content, "$1")))
	return hex.EncodeToString(hash[:16])
}
