package page

import (
	"regexp"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"croft.dev/croft/internal/declare/wording"
)

// textPart is a part of a text: a time, or the text before, between and after times.
type textPart struct {
	Text string
	// Datetime is the time for scripts; empty if the part is no time.
	Datetime string
}

// writtenTime matches the times of wording.FormatTime.
var writtenTime = regexp.MustCompile(`\b\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC\b`)

// splitTimes splits a text at its times, which the page's script converts to the viewer's time zone.
// Texts of croft's commands contain times, too, and the commands print the same texts.
func splitTimes(text string) []textPart {
	text = clip(text)
	var parts []textPart
	end := 0
	for _, at := range writtenTime.FindAllStringIndex(text, -1) {
		t, err := wording.ParseTime(text[at[0]:at[1]])
		if err != nil {
			continue // such as the 31st of February
		}
		parts = append(parts, textPart{Text: text[end:at[0]]}, textPart{text[at[0]:at[1]], formatDatetime(t)})
		end = at[1]
	}
	return append(parts, textPart{Text: text[end:]})
}

// formatDatetime formats a time for the attribute datetime.
func formatDatetime(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// formatTime formats a time in UTC, since a page without a script does not know the viewer's zone.
func formatTime(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return wording.FormatTime(t)
}

// newAgeCell returns a cell with the age of an object, as kubectl prints it. The page's script updates
// it.
func newAgeCell(created, now time.Time) Cell {
	return Cell{Text: formatAge(created, now), Since: created}
}

func formatAge(created, now time.Time) string {
	if created.IsZero() {
		return "-"
	}
	return duration.HumanDuration(now.Sub(created))
}
