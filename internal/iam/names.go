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

// shortened truncates a name that is too long, and appends a hash, so that names with the
// same beginning remain distinct.
func shortened(name string, most int) string {
	if len(name) <= most {
		return name
	}
	end := "-" + hash(name)
	return name[:most-len(end)] + end
}

// ordinal numbers objects of the same kind. The first one has no number.
func ordinal(i int) string {
	if i == 0 {
		return ""
	}
	return strconv.Itoa(i + 1)
}

// identifier reduces a name to letters and digits, with a hash if it has other characters,
// so that similar names remain distinct.
func identifier(name string) string {
	plain := strings.Map(func(r rune) rune {
		if isPlain(r) {
			return r
		}
		return -1
	}, name)
	if plain == name {
		return name
	}
	return plain + hash(name)
}

// snake reduces a name to lower-case letters, digits and '_', with a hash like identifier.
func snake(name string) string {
	plain := strings.Map(func(r rune) rune {
		if isPlain(r) {
			return unicode.ToLower(r)
		}
		return '_'
	}, name)
	if plain == strings.ToLower(strings.ReplaceAll(name, "-", "_")) && !strings.Contains(name, "_") {
		return plain
	}
	return plain + "_" + hash(name)
}

func isPlain(r rune) bool {
	return r <= unicode.MaxASCII && (unicode.IsLetter(r) || unicode.IsDigit(r))
}

func hash(name string) string {
	sum := sha256.Sum256([]byte(name))
	return hex.EncodeToString(sum[:4])
}
