package bill

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"croft.dev/croft/internal/cost/money"
)

// columns are the positions of a form's columns in a row. A column that does not exist has the position -1.
type columns map[string]int

// findColumns returns the positions of columns. It returns an error that names the required ones that are missing.
func findColumns(header []string, form string, required, optional []string) (columns, error) {
	at := columns{}
	for _, name := range append(required, optional...) {
		at[name] = -1
	}
	for i, name := range header {
		if position, known := at[name]; known && position < 0 {
			at[name] = i
		}
	}
	var missing []string
	for _, name := range required {
		if at[name] < 0 {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		return nil, fmt.Errorf("the bill is in the form %s, without the columns %s: add them to the export", form, strings.Join(missing, ", "))
	}
	return at, nil
}

// get returns a field, or "" if the column does not exist.
func (c columns) get(row []string, name string) string {
	if i := c[name]; i >= 0 {
		return row[i]
	}
	return ""
}

// readNumber reads a number. An empty field is 0.
func (c columns) readNumber(row []string, name string, d *money.Decimal) error {
	text := c.get(row, name)
	if text == "" {
		text = "0"
	}
	if err := d.Parse(text); err != nil {
		return &fieldError{name, fmt.Sprintf("%q %s", shorten(text), err)}
	}
	return nil
}

// shorten limits the length of a text in a message.
func shorten(text string) string {
	if len(text) > 60 {
		return text[:60] + "…"
	}
	return text
}

// timeForms are the forms of times in exports: ISO 8601 with and without seconds and fractions, and
// forms of databases.
var timeForms = []string{time.RFC3339, "2006-01-02T15:04Z07:00", "2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02 15:04:05 MST",
	time.DateOnly}

// times reads times, and remembers the last one: most lines have the time of the line before.
type times struct {
	text string
	time time.Time
}

func (t *times) read(c columns, row []string, name string) (time.Time, error) {
	text := c.get(row, name)
	if text == t.text && text != "" {
		return t.time, nil
	}
	for _, form := range timeForms {
		if parsed, err := time.Parse(form, text); err == nil && parsed.Year() >= 1970 && parsed.Year() < 3000 {
			t.text, t.time = strings.Clone(text), parsed.UTC()
			return t.time, nil
		}
	}
	return time.Time{}, &fieldError{name, fmt.Sprintf("%q must be a time, such as 2026-11-01T00:00:00Z", shorten(text))}
}

// readPeriod reads the period of a line.
func readPeriod(c columns, row []string, from, until string, cache *[2]times, l *line) (err error) {
	if l.from, err = cache[0].read(c, row, from); err != nil {
		return err
	}
	if l.until, err = cache[1].read(c, row, until); err != nil {
		return err
	}
	if l.until.Before(l.from) {
		return &fieldError{until, "is before " + from}
	}
	return nil
}

// tags are the tags of a line that croft sets.
type tags struct{ costCode, pool string }

// maxTagSets limits the memory for tags that were read before.
const maxTagSets = 4096

// tagReader reads tags from JSON objects. Most lines have the tags of an earlier line.
type tagReader struct {
	Options
	known map[string]*tags
}

func newTagReader(o Options) *tagReader { return &tagReader{Options: o, known: map[string]*tags{}} }

// read reads a JSON object of tags.
func (r *tagReader) read(column, text string) (*tags, error) {
	if found := r.known[text]; found != nil {
		return found, nil
	}
	var pairs map[string]any
	if text != "" {
		if err := json.Unmarshal([]byte(text), &pairs); err != nil {
			return nil, &fieldError{column, fmt.Sprintf(`%q must be a JSON object, such as {"CostCode": "org1"}`, shorten(text))}
		}
	}
	found := &tags{costCode: findTag(pairs, r.CostCodeTag), pool: findTag(pairs, r.PoolTag)}
	if len(r.known) == maxTagSets {
		clear(r.known)
	}
	r.known[strings.Clone(text)] = found
	return found, nil
}

// findTag returns the value of a tag. AWS writes the key CostCode as user:CostCode or user_cost_code. The
// exact key precedes, then the first one in alphabetical order.
func findTag(pairs map[string]any, key string) string {
	best := ""
	for name := range pairs {
		if name == key {
			best = name
			break
		}
		if normalizeKey(name) == normalizeKey(key) && (best == "" || name < best) {
			best = name
		}
	}
	value, _ := pairs[best].(string)
	return value
}

// normalizeKey removes the prefix of user-defined tags, and all differences in case and punctuation.
func normalizeKey(key string) string {
	for _, prefix := range []string{"user:", "user_"} {
		key = strings.TrimPrefix(key, prefix)
	}
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'A' && r <= 'Z':
			return r - 'A' + 'a'
		case r == '-' || r == '_' || r == ':' || r == '.' || r == '/' || r == ' ':
			return -1
		default:
			return r
		}
	}, key)
}
