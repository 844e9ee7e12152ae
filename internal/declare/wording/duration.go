package wording

import (
	"strings"
	"time"
)

// FormatDuration returns a duration of seconds or more without parts that are zero: 1h30m, 45m.
func FormatDuration(d time.Duration) string {
	text := d.Round(time.Second).String()
	if short, ok := strings.CutSuffix(text, "m0s"); ok {
		text = short + "m"
	}
	if short, ok := strings.CutSuffix(text, "h0m"); ok {
		text = short + "h"
	}
	return text
}
