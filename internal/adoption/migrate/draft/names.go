package draft

import (
	"regexp"
	"strings"
)

var notInNames = regexp.MustCompile(`[^a-z0-9-]+`)

// ToName converts any name into a valid name for a tenant or a pool.
func ToName(name string) string {
	made := strings.Trim(notInNames.ReplaceAllString(strings.ToLower(name), "-"), "-")
	if len(made) > 63 {
		made = strings.Trim(made[:63], "-")
	}
	if made == "" {
		return name
	}
	return made
}

// IsCostCode reports whether a label or tag is a cost code.
func IsCostCode(key string) bool {
	key = key[strings.LastIndexByte(key, '/')+1:]
	return strings.ReplaceAll(strings.ToLower(key), "-", "") == "costcode"
}
