package wording

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Describe returns a value with a word for its type.
func Describe(v any) string {
	switch v := v.(type) {
	case nil:
		return "nothing"
	case string:
		return fmt.Sprintf("the text %q", Text(v))
	case bool:
		return Text(v)
	case map[string]any:
		return "a mapping"
	case []any:
		return "a list"
	default:
		return "the number " + Text(v)
	}
}

// repeatable is the maximum length of a text that a message repeats.
const repeatable = 80

// Text returns a value as it would be written. A text of more than repeatable bytes is
// truncated.
func Text(v any) string {
	switch v := v.(type) {
	case nil:
		return "nothing"
	case string:
		if len(v) > repeatable {
			return strings.ToValidUTF8(v[:repeatable], "") + "…"
		}
		return v
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	case map[string]any:
		var entries []string
		for _, k := range slices.Sorted(maps.Keys(v)) {
			entries = append(entries, k+": "+Text(v[k]))
		}
		return "{" + strings.Join(entries, ", ") + "}"
	default:
		return fmt.Sprint(v)
	}
}

// Length returns the number of characters of a text, or 0 for any other value.
func Length(v any) int {
	s, _ := v.(string)
	return utf8.RuneCountInString(s)
}

// IsScalar reports whether a value is a text, a number or a boolean.
func IsScalar(v any) bool {
	switch v.(type) {
	case nil, map[string]any, []any:
		return false
	}
	return true
}

// Enumerate formats a list as in a sentence: a, b and c.
func Enumerate(list []string, conjunction string) string {
	if len(list) < 2 {
		return strings.Join(list, "")
	}
	last := len(list) - 1
	return strings.Join(list[:last], ", ") + " " + conjunction + " " + list[last]
}

// JoinNames formats a list of names as a cell of a table: separated by commas, or "-" without
// any.
func JoinNames(names []string) string {
	if len(names) == 0 {
		return "-"
	}
	all := slices.Clone(names)
	for i, name := range all {
		if name == "" {
			all[i] = "(none named)"
		}
	}
	return strings.Join(all, ", ")
}
