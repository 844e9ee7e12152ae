package why

import (
	"slices"
	"strings"

	"croft.dev/croft/internal/diagnose/catalog"
)

// Explain finds causes in the lines of a log or any other text. It reports each cause once,
// with the first line that matches.
func Explain(text string) []catalog.Finding {
	var all []catalog.Finding
	for line := range strings.Lines(text) {
		for _, f := range catalog.FindMatches(line) {
			if !slices.ContainsFunc(all, func(g catalog.Finding) bool { return g.ID == f.ID }) {
				all = append(all, f)
			}
		}
	}
	return all
}
