package wording

import "testing"

func TestEscape(t *testing.T) {
	for text, want := range map[string][2]string{
		"plain ä 日本":     {"plain ä 日本", "plain ä 日本"},
		"a\nb\tc":        {"a\nb\tc", `a\nb\tc`},
		"a\x1b[2Jb\x00":  {`a\x1b[2Jb\x00`, `a\x1b[2Jb\x00`},
		"a\u202eb\u2066": {`a\u202eb\u2066`, `a\u202eb\u2066`},
		"a\u2028b\u009b": {`a\u2028b\x9b`, `a\u2028b\x9b`},
		"a\xffb":         {`a\xffb`, `a\xffb`},
		// Zero-width, soft hyphen, filler, variation selector and tag.
		"a\u200bb\ufeff\u00ad\u3164\ufe0f\U000e0041": {`a\u200bb\ufeff\xad\u3164\ufe0f\U000e0041`, `a\u200bb\ufeff\xad\u3164\ufe0f\U000e0041`},
		"\u0600١ 👩 é":                                {"\u0600١ 👩 é", "\u0600١ 👩 é"},
	} {
		if got := [2]string{EscapeControls(text), EscapeLine(text)}; got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
