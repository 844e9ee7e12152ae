package draft

import (
	"regexp"
	"strings"
)

var notInNames = regexp.MustCompile(`[^a-z0-9-]+`)

// ToName converts any name into a valid name for a tenant or a pool.
func ToName(name string) string {
	valid := strings.Trim(notInNames.ReplaceAllString(strings.ToLower(name), "-"), "-")
	if len(valid) > 63 {
		valid = strings.Trim(valid[:63], "-")
	}
	if valid == "" {
		return name
	}
	return valid
}

// IsCostCode reports whether a label or tag is a cost code.
func IsCostCode(key string) bool {
	key = key[strings.LastIndexByte(key, '/')+1:]
	return strings.ReplaceAll(strings.ToLower(key), "-", "") == "costcode"
}
