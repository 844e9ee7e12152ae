package page

import (
	"cmp"
	_ "embed"
	"fmt"
	"strings"
	"sync"

	"golang.org/x/text/language"
	"sigs.k8s.io/yaml"

	"croft.dev/croft/internal/declare/wording"
)

// Language is the language of a page's own texts. The texts of the cluster and of croft's commands are English on all
// pages: the documentation has these words.
type Language string

// The languages of pages.
const (
	English Language = "en"
	German  Language = "de"
)

// languages are the languages of matcher. The first one is the default.
var languages = []Language{English, German}

var matcher = language.NewMatcher([]language.Tag{language.English, language.German})

//go:embed german.yaml
var germanTexts []byte

// catalogue returns the texts of each language except English, by the English text.
var catalogue = sync.OnceValue(func() map[Language]map[string]string {
	var german map[string]string
	if err := yaml.UnmarshalStrict(germanTexts, &german); err != nil {
		panic(err) // the file is a part of the program
	}
	return map[Language]map[string]string{German: german}
})

// ChooseLanguage returns the language that a browser prefers, from its header Accept-Language.
func ChooseLanguage(acceptLanguage string) Language {
	_, i := language.MatchStrings(matcher, acceptLanguage)
	return languages[i]
}

// Lang returns the language of the page.
func (p Page) Lang() Language { return cmp.Or(p.Language, English) }

// Text is a text that each page shows in its own language.
type Text []sentence

// sentence is an English text, which is its key in the catalogue, with the names and numbers in it.
type sentence struct {
	english string
	args    []any
}

// T returns a text of the catalogue, with arguments as for fmt.Sprintf. A Text among them is translated, too.
func T(english string, args ...any) Text { return Text{{english, args}} }

// Raw returns a name, or a text of the cluster or of croft's commands, which is the same in each language.
func Raw(text string) Text { return Text{{"%s", []any{text}}} }

// listHeads returns the heads of a table's columns.
func listHeads(all ...string) []Text {
	texts := make([]Text, len(all))
	for i, head := range all {
		texts[i] = T(head)
	}
	return texts
}

// nameList is an argument of a text: a, b and c.
type nameList []string

// In returns the text in a language.
func (t Text) In(l Language) string {
	sentences := make([]string, len(t))
	for i, s := range t {
		sentences[i] = s.in(l)
	}
	return strings.Join(sentences, " ")
}

func (s sentence) in(l Language) string {
	pattern := s.english
	if translated, ok := catalogue()[l][pattern]; ok {
		pattern = translated
	}
	if len(s.args) == 0 {
		return pattern
	}
	args := make([]any, len(s.args))
	for i, arg := range s.args {
		switch arg := arg.(type) {
		case Text:
			args[i] = arg.In(l)
		case nameList:
			args[i] = wording.Enumerate(arg, T("and").In(l))
		default:
			args[i] = arg
		}
	}
	return fmt.Sprintf(pattern, args...)
}

// newTranslator returns the function t of the templates. It translates a Text, or a key with its arguments.
func newTranslator(l Language) func(text any, args ...any) string {
	return func(text any, args ...any) string {
		if t, ok := text.(Text); ok {
			return clip(t.In(l))
		}
		return clip(T(fmt.Sprint(text), args...).In(l))
	}
}
