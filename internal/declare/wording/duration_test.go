package wording

import (
	"testing"
	"time"
)

func TestFormatDuration(t *testing.T) {
	for want, d := range map[string]time.Duration{
		"0s": 0, "10s": 10 * time.Second, "1m": time.Minute, "10m": 10 * time.Minute, "1m30s": 90 * time.Second,
		"1h": time.Hour, "20h": 20 * time.Hour, "1h30m": 90 * time.Minute, "1h0m5s": time.Hour + 5*time.Second, "168h": 7 * 24 * time.Hour,
	} {
		if got := FormatDuration(d); got != want {
			t.Errorf("%v: %s, want %s", d, got, want)
		}
	}
}
