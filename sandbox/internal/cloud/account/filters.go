package account

import (
	"path"
	"slices"
	"strings"
)

// Filters are EC2's filters: each names an attribute or a tag, and values of which one has to
// match. * and ? are wildcards.
type Filters map[string][]string

func (f Filters) matches(attributes map[string][]string, tags Tags) bool {
	for name, patterns := range f {
		if !f.matchOne(name, patterns, attributes, tags) {
			return false
		}
	}
	return true
}

func (Filters) matchOne(name string, patterns []string, attributes map[string][]string, tags Tags) bool {
	var has []string
	switch key, isTag := strings.CutPrefix(name, "tag:"); {
	case isTag:
		value, ok := tags[key]
		if !ok {
			return false
		}
		has = []string{value}
	case name == "tag-key":
		for key := range tags {
			has = append(has, key)
		}
	default:
		var known bool
		if has, known = attributes[name]; !known {
			// EC2 refuses an unknown filter. Matching no resource is as safe.
			return false
		}
	}
	return slices.ContainsFunc(has, func(value string) bool {
		return slices.ContainsFunc(patterns, func(pattern string) bool { return matchesPattern(pattern, value) })
	})
}

// matchesPattern reports whether a value matches a pattern. As in EC2, * also matches slashes.
func matchesPattern(pattern, value string) bool {
	hide := strings.NewReplacer("/", "\x00", "[", "\x01", "\\", "\x02")
	ok, err := path.Match(hide.Replace(pattern), hide.Replace(value))
	return err == nil && ok
}
