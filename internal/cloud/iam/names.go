package iam

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
	"unicode"
)

// The maximum lengths of AWS names.
const (
	maxRoleName   = 64
	maxPolicyName = 128
	maxRuleName   = 64
	maxQueueName  = 80
)

// shortenName truncates a name that is too long, and appends a hash, so that names with the
// same beginning remain distinct.
func shortenName(name string, limit int) string {
	if len(name) <= limit {
		return name
	}
	end := "-" + hashName(name)
	return name[:limit-len(end)] + end
}

// formatOrdinal numbers objects of the same kind. The first one has no number.
func formatOrdinal(i int) string {
	if i == 0 {
		return ""
	}
	return strconv.Itoa(i + 1)
}

// makeIdentifier reduces a name to letters and digits, with a hash if it has other characters,
// so that similar names remain distinct.
func makeIdentifier(name string) string {
	plain := strings.Map(func(r rune) rune {
		if isPlain(r) {
			return r
		}
		return -1
	}, name)
	if plain == name {
		return name
	}
	return plain + hashName(name)
}

// toSnakeCase reduces a name to lower-case letters, digits and '_', with a hash like identifier.
func toSnakeCase(name string) string {
	plain := strings.Map(func(r rune) rune {
		if isPlain(r) {
			return unicode.ToLower(r)
		}
		return '_'
	}, name)
	if plain == strings.ToLower(strings.ReplaceAll(name, "-", "_")) && !strings.Contains(name, "_") {
		return plain
	}
	return plain + "_" + hashName(name)
}

func isPlain(r rune) bool {
	return r <= unicode.MaxASCII && (unicode.IsLetter(r) || unicode.IsDigit(r))
}

func hashName(name string) string {
	sum := sha256.Sum256([]byte(name))
	return hex.EncodeToString(sum[:4])
}
