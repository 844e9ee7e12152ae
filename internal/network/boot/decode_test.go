package boot_test

import (
	"maps"
	"testing"
	"time"

	"croft.dev/croft/internal/network/boot"
)

// FuzzDecode fails if an annotation on a node causes a panic, or if encoding changes the times.
func FuzzDecode(f *testing.F) {
	for _, text := range []string{`{"VM Initialized":"2026-01-02T03:04:05.678Z"}`, `{"VM Initialized":"0001-01-01T00:00:00Z","other":"2026-01-02T03:04:05Z"}`, "null", "[]", `{"VM Initialized":1}`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		times, err := boot.Decode(text)
		if err != nil {
			t.Skip()
		}
		for event, at := range times {
			times[event] = at.UTC().Truncate(time.Millisecond)
		}
		maps.DeleteFunc(times, func(_ boot.Event, at time.Time) bool { return at.IsZero() })
		again, err := boot.Decode(boot.Encode(times))
		if err != nil || !maps.EqualFunc(times, again, time.Time.Equal) {
			t.Errorf("%s: %v became %v (%v)", text, times, again, err)
		}
	})
}
