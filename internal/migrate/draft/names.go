package draft

import (
	"regexp"
	"strings"
)

var notInNames = regexp.MustCompile(`[^a-z0-9-]+`)

// AsName makes a name that a tenant or a pool can have of any other.
func AsName(name string) string {
	made := strings.Trim(notInNames.ReplaceAllString(strings.ToLower(name), "-"), "-")
	if len(made) > 63 {
		made = strings.Trim(made[:63], "-")
	}
	if made == "" {
		return name
	}
	return made
}

// IsCostCode recognises the label or the tag that says who pays.
func IsCostCode(key string) bool {
	key = key[strings.LastIndexByte(key, '/')+1:]
	return strings.ReplaceAll(strings.ToLower(key), "-", "") == "costcode"
}
