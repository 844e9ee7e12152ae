package page_test

import (
	"strings"
	"testing"

	"croft.dev/croft/internal/dashboard/page"
)

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
