package draft

import (
	"fmt"
	"time"

	"croft.dev/croft/api/v1alpha1"
)

// FormatSeconds returns a number of seconds as a short Duration: 600 is 10m.
func FormatSeconds(n int64) v1alpha1.Duration {
	switch {
	case n < 0 || n > int64((1<<63-1)/time.Second):
		return v1alpha1.Never
	case n == 0 || n%60 != 0:
		return v1alpha1.Duration(fmt.Sprintf("%ds", n))
	case n%3600 != 0:
		return v1alpha1.Duration(fmt.Sprintf("%dm", n/60))
	default:
		return v1alpha1.Duration(fmt.Sprintf("%dh", n/3600))
	}
}

// ParseDuration converts a duration in Karpenter's format, such as 168h0m0s, into a short Duration.
func ParseDuration(text string) (v1alpha1.Duration, bool) {
	if text == string(v1alpha1.Never) {
		return v1alpha1.Never, true
	}
	span, err := time.ParseDuration(text)
	if err != nil || span < 0 {
		return "", false
	}
	return FormatSeconds(int64(span / time.Second)), true
}
