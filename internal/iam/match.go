package iam

import "strings"

// matches says whether a text is what a pattern asks for: * is any number of
// characters, ? is one.
func matches(pattern, text string) bool {
	p, t := []rune(pattern), []rune(text)
	at, star, from := 0, -1, 0
	for i := 0; i < len(t); {
		switch {
		case at < len(p) && p[at] == '*':
			star, from = at, i
			at++
		case at < len(p) && (p[at] == '?' || p[at] == t[i]):
			at++
			i++
		case star >= 0: // the last * takes one character more
			from++
			at, i = star+1, from
		default:
			return false
		}
	}
	for at < len(p) && p[at] == '*' {
		at++
	}
	return at == len(p)
}

// arnParts is how many parts the colons of an ARN part it into; the last one may
// have colons of its own.
const arnParts = 6

// matchesARN compares two ARNs part by part, so that no * reaches over a colon. A
// pattern that is * alone is any ARN, and anything else.
func matchesARN(pattern, arn string) bool {
	if pattern == "*" {
		return true
	}
	wanted, got := strings.SplitN(pattern, ":", arnParts), strings.SplitN(arn, ":", arnParts)
	if len(wanted) != arnParts || len(got) != arnParts {
		return false
	}
	for i := range wanted {
		if !matches(wanted[i], got[i]) {
			return false
		}
	}
	return true
}
