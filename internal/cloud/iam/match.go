package iam

import "strings"

// matchesPattern reports whether a text matches a pattern, in which * matches any number of
// characters and ? matches one.
func matchesPattern(pattern, text string) bool {
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
		case star >= 0: // the last * matches one character more
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

// arnParts is the number of colon-separated parts of an ARN. The last part may contain
// colons.
const arnParts = 6

// matchesARN compares two ARNs part by part, so that no * matches across a colon. The
// pattern * alone matches everything, even strings that are not ARNs.
func matchesARN(pattern, arn string) bool {
	if pattern == "*" {
		return true
	}
	want, got := strings.SplitN(pattern, ":", arnParts), strings.SplitN(arn, ":", arnParts)
	if len(want) != arnParts || len(got) != arnParts {
		return false
	}
	for i := range want {
		if !matchesPattern(want[i], got[i]) {
			return false
		}
	}
	return true
}
