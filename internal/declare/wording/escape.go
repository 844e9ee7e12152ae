package wording

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// EscapeControls escapes control characters, and characters that change the direction of text.
// It keeps line breaks and tabs. Tenants write events and names, which croft prints on
// terminals and on pages.
func EscapeControls(text string) string {
	return escapeRunes(text, func(r rune) bool { return r != '\n' && r != '\t' && IsControl(r) })
}

// EscapeLine is like EscapeControls, for a name or a cell: it also escapes line breaks and
// tabs, so that a text cannot forge a line.
func EscapeLine(text string) string { return escapeRunes(text, IsControl) }

// IsControl reports whether a character controls a terminal or the layout of other characters.
func IsControl(r rune) bool { return unicode.IsControl(r) || isLayoutControl(r) }

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
