package wording

import "time"

// timeLayout names the zone, because readers are in others.
const timeLayout = "2006-01-02 15:04:05 UTC"

// FormatTime formats a time in UTC.
func FormatTime(t time.Time) string { return t.UTC().Format(timeLayout) }

// ParseTime parses a text that FormatTime has written.
func ParseTime(text string) (time.Time, error) { return time.Parse(timeLayout, text) }
