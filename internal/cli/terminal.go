package cli

import (
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/fatih/color"
)

// paintedText is croft's own text, which may contain escape sequences: printSafely prints it unchanged.
// Text from other sources in it was escaped by plain.
type paintedText string

func green(text string) paintedText {
	return paintedText(color.GreenString("%s", escapeControls(text)))
}
func red(text string) paintedText { return paintedText(color.RedString("%s", escapeControls(text))) }
func yellow(text string) paintedText {
	return paintedText(color.YellowString("%s", escapeControls(text)))
}

// printSafely prints to the user. Errors of a closed terminal are ignored. Text from other sources
// must be an argument, never the format: control characters are escaped only in arguments.
// Tenants write events and names.
func printSafely(w io.Writer, format string, args ...any) {
	safe := make([]any, len(args))
	for i, arg := range args {
		switch arg := arg.(type) {
		case paintedText:
			safe[i] = string(arg)
		case string:
			safe[i] = escapeControls(arg)
		case error:
			safe[i] = escapeControls(arg.Error())
		case fmt.Stringer:
			safe[i] = escapeControls(arg.String())
		default:
			safe[i] = arg
		}
	}
	_, _ = fmt.Fprintf(w, format, safe...)
}

// escapeControls escapes control characters, and characters that change the direction of text. It
// keeps line breaks and tabs.
func escapeControls(text string) string {
	return escapeRunes(text, func(r rune) bool { return r != '\n' && r != '\t' && isControl(r) })
}

// escapeLine is like plain, for a name or a cell: it also escapes line breaks and tabs, so that
// a text cannot forge a line.
func escapeLine(text string) string { return escapeRunes(text, isControl) }

func isControl(r rune) bool { return unicode.IsControl(r) || isLayoutControl(r) }

// isLayoutControl reports whether a character has no shape of its own and changes the layout of
// others: Unicode's bidirectional controls, and its line separators.
func isLayoutControl(r rune) bool {
	switch {
	case r == 0x061c, r == 0x200e, r == 0x200f, r >= 0x2028 && r <= 0x202e, r >= 0x2066 && r <= 0x2069:
		return true
	default:
		return false
	}
}

func escapeRunes(text string, hidden func(rune) bool) string {
	if utf8.ValidString(text) && strings.IndexFunc(text, hidden) < 0 {
		return text
	}
	var b strings.Builder
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, text[0])
		case !hidden(r):
			b.WriteString(text[:size])
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r < 0x100:
			fmt.Fprintf(&b, `\x%02x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
		text = text[size:]
	}
	return b.String()
}

// escapeJSON writes characters that JSON allows and that a terminal interprets as \u escapes.
// The data stays the same.
func escapeJSON(document []byte) []byte {
	return []byte(escapeRunesJSON(string(document), func(r rune) bool { return r >= 0x7f && isControl(r) }))
}

func escapeRunesJSON(text string, hidden func(rune) bool) string {
	if strings.IndexFunc(text, hidden) < 0 {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if hidden(r) {
			fmt.Fprintf(&b, `\u%04x`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}
