package migrate

import (
	"regexp"
	"strings"
)

var notInNames = regexp.MustCompile(`[^a-z0-9-]+`)

// asName makes a name that a tenant or a pool can have of any other.
func asName(name string) string {
	made := strings.Trim(notInNames.ReplaceAllString(strings.ToLower(name), "-"), "-")
	if len(made) > 63 {
		made = strings.Trim(made[:63], "-")
	}
	if made == "" {
		return name
	}
	return made
}
