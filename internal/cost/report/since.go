package report

import (
	"strconv"
	"strings"
	"time"
)

// ParseSince reads a duration as Go writes it, or in days, such as 30d.
func ParseSince(text string) (time.Duration, error) {
	if days, found := strings.CutSuffix(text, "d"); found {
		n, err := strconv.ParseUint(days, 10, 16)
		return time.Duration(n) * 24 * time.Hour, err //nolint:gosec // 16 bits
	}
	return time.ParseDuration(text)
}
