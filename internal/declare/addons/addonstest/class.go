// Package addonstest looks up keys in the catalogue of add-ons as the rules of the policy wall do.
package addonstest

import (
	"regexp"
	"strings"

	"croft.dev/croft/internal/declare/addons"
)

var bareDomain = regexp.MustCompile(addons.BareDomain)

// FindClass returns the class of a key in a table.
func FindClass(table map[string]string, key string) string {
	for _, entry := range addons.ListEntries(key) {
		if class, ok := table[entry]; ok {
			return class
		}
	}
	if !strings.Contains(key, "/") && !bareDomain.MatchString(key) {
		return string(addons.Harmless)
	}
	return string(addons.Unknown)
}
