package cli

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf16"

	"github.com/fatih/color"

	"croft.dev/croft/internal/declare/wording"
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

// escapeControls escapes control characters. It keeps line breaks and tabs.
func escapeControls(text string) string { return wording.EscapeControls(text) }

// escapeLine also escapes line breaks and tabs.
func escapeLine(text string) string { return wording.EscapeLine(text) }

// escapeJSON writes characters that JSON allows and that a terminal interprets as \u escapes.
// The data stays the same.
func escapeJSON(document []byte) []byte {
	return []byte(escapeRunesJSON(string(document), func(r rune) bool { return r >= 0x7f && wording.IsControl(r) }))
}

func escapeRunesJSON(text string, hidden func(rune) bool) string {
	if strings.IndexFunc(text, hidden) < 0 {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if hidden(r) {
			for _, unit := range utf16.AppendRune(nil, r) {
				fmt.Fprintf(&b, `\u%04x`, unit)
			}
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}
