package wording

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// EscapeControls escapes control characters and invisible characters. It keeps line breaks and tabs.
// Tenants write events and names, which croft prints on terminals and on pages.
func EscapeControls(text string) string {
	return escapeRunes(text, func(r rune) bool { return r != '\n' && r != '\t' && IsControl(r) })
}

// EscapeLine is like EscapeControls, for a name or a cell: it also escapes line breaks and
// tabs, so that a text cannot forge a line.
func EscapeLine(text string) string { return escapeRunes(text, IsControl) }

// IsControl reports whether a character controls a terminal or the layout of other characters, or is
// invisible.
func IsControl(r rune) bool { return unicode.IsControl(r) || isInvisible(r) }

// isInvisible reports whether a character has no shape of its own. Such characters change the direction or
// the lines of a text, or make two names look the same: bidirectional controls, zero-width characters,
// fillers, tags and variation selectors. They are Unicode's Default_Ignorable_Code_Point, the other format
// characters and the line separators. Arabic format characters before a number are visible.
func isInvisible(r rune) bool {
	return r > unicode.MaxASCII && unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector) &&
		!unicode.Is(unicode.Prepended_Concatenation_Mark, r)
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
		case r < 0x10000:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
		text = text[size:]
	}
	return b.String()
}
