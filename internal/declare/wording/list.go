package wording

import (
	"fmt"
	"strings"
)

// FormatFirst lists at most this number of names, and the number of the others: a, b and 3 more.
func FormatFirst(names []string, most int) string {
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

// FormatCount returns a number with its noun, whose plural ends with s.
func FormatCount(n int, noun string) string { return fmt.Sprintf("%d %s", n, FormatNoun(n, noun)) }

// FormatNoun returns a noun in the singular or the plural.
func FormatNoun(n int, noun string) string {
	if n == 1 {
		return noun
	}
	return noun + "s"
}
