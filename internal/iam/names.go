package iam

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
	"unicode"
)

// How long names may be in AWS.
const (
	maxRoleName   = 64
	maxPolicyName = 128
	maxRuleName   = 64
	maxQueueName  = 80
)

// shortened is a name that fits: one that is too long is cut, and ends in what
// tells it from others that begin alike.
func shortened(name string, most int) string {
	if len(name) <= most {
		return name
	}
	end := "-" + hash(name)
	return name[:most-len(end)] + end
}

// ordinal tells several of a kind apart: the first needs nothing.
func ordinal(i int) string {
	if i == 0 {
		return ""
	}
	return strconv.Itoa(i + 1)
}

// identifier is a name in letters and digits, with what tells it from others that
// differ in nothing else.
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

// snake is a name in small letters, digits and '_', likewise.
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
