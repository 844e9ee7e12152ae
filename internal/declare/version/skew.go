package version

import (
	"fmt"
	"regexp"

	"k8s.io/apimachinery/pkg/util/version"
)

// pseudo matches the versions that Go gives to commits without a tag, such as
// v0.0.0-20261125011530-95ea191f0a1b (https://go.dev/ref/mod#pseudo-versions).
var pseudo = regexp.MustCompile(`[-.]\d{14}-[0-9a-f]{12}(\+|$)`)

// parseRelease parses the version of a release of croft. It returns nil for anything else:
// builds from commits have no known order.
func parseRelease(text string) *version.Version {
	v, err := version.ParseSemantic(text)
	if err != nil || pseudo.MatchString(text) {
		return nil
	}
	return v
}

// IsOlder reports whether one version is known to be older than another: both are releases,
// and the number of the first is lower. A pre-release is older than its release.
func IsOlder(one, than string) bool {
	a, b := parseRelease(one), parseRelease(than)
	return a != nil && b != nil && a.LessThan(b)
}

// IsOlderMinor is like Older, and ignores patch versions. Releases that differ only in the
// patch version read and write the same fields.
func IsOlderMinor(one, than string) bool {
	a, b := parseRelease(one), parseRelease(than)
	return a != nil && b != nil && a.LessThan(b) && (a.Major() != b.Major() || a.Minor() != b.Minor())
}

// Skew describes the difference between this croft's version and the operator's in one
// line, with the remedy. It is empty if they are the same, or if the operator's version is
// unknown.
func Skew(this, operator string) string {
	if operator == "" || operator == this {
		return ""
	}
	line := fmt.Sprintf("this croft is %s, and the operator is %s", this, operator)
	switch {
	case IsOlder(this, operator):
		return line + ": use the operator's version of croft"
	case IsOlder(operator, this):
		return line + ": upgrade the operator, by `helm upgrade` or `croft install --image IMAGE`"
	default:
		return line + ": they may write and expect different objects"
	}
}
