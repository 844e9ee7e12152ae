package migrate

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Outcome is what became of a field.
type Outcome string

// The outcomes, the one that asks most of a person last.
const (
	// Other fields are none of croft's business.
	Other Outcome = "other"
	// Kept fields mean the same in croft.yaml.
	Kept Outcome = "kept"
	// Changed fields mean something else, and the message says what.
	Changed Outcome = "changed"
	// NotKept fields have no place in croft.yaml; the message says why, and what
	// to do.
	NotKept Outcome = "notKept"
)

var outcomes = []Outcome{Other, Kept, Changed, NotKept}

// Finding says what became of one field, or of all fields in it of which nothing
// else is said.
type Finding struct {
	Outcome Outcome `json:"outcome"`
	File    string  `json:"file"`
	Line    int     `json:"line,omitempty"`
	Object  string  `json:"object"`
	// Field is the path in the object; empty for the object as a whole.
	Field string `json:"field,omitempty"`
	// Value is what was written, abridged; empty for a field that was not.
	Value string `json:"value,omitempty"`
	// To are the fields that it went to, such as pools.jobs.ttl.
	To      []string `json:"to,omitempty"`
	Message string   `json:"message,omitempty"`
	// Leaves is how many values the finding accounts for.
	Leaves int `json:"leaves"`
}

// unknown is said of whatever nothing else was said of.
const unknown = "croft migrate does not know this field: look whether you need it, and keep the object that has it if so"

// entry is what was said of a path.
type entry struct {
	path     []string
	outcome  Outcome
	to       []string
	messages []string
	leaves   int
	// general says that it was said of all of a kind, so that anything that is said
	// of this field in particular takes its place.
	general bool
}

// inGeneral marks what was said last of the field as said of all of its kind.
func (f Field) inGeneral() {
	if e, ok := f.object.entries[f.key()]; ok {
		e.general = true
	}
}

func (f Field) key() string { return strings.Join(f.path, "\x00") }

// said reports whether anything was said of the field.
func (f Field) said() bool {
	_, ok := f.object.entries[f.key()]
	return ok
}

func (f Field) account(outcome Outcome, to, message string) {
	if f.object == nil || !f.found {
		return
	}
	key := f.key()
	e, ok := f.object.entries[key]
	if !ok || e.general {
		e = &entry{path: f.path, outcome: outcome}
		f.object.entries[key] = e
	}
	// What two sides say of one field, as of a template that several pools share, is
	// said together, under whichever outcome asks for more.
	if slices.Index(outcomes, outcome) > slices.Index(outcomes, e.outcome) {
		e.outcome = outcome
	}
	if to != "" && !slices.Contains(e.to, to) {
		e.to = append(e.to, to)
	}
	if message != "" && !slices.Contains(e.messages, message) {
		e.messages = append(e.messages, message)
	}
}

// Kept says that the field means the same as a field of croft.yaml.
func (f Field) Kept(to string) { f.account(Kept, to, "") }

// KeptAs is Kept with a word of how.
func (f Field) KeptAs(to, format string, args ...any) {
	f.account(Kept, to, fmt.Sprintf(format, args...))
}

// Changed says that the field went to one that means something else.
func (f Field) Changed(to, format string, args ...any) {
	f.account(Changed, to, fmt.Sprintf(format, args...))
}

// NotKept says why the field has no place, and what to do.
func (f Field) NotKept(format string, args ...any) {
	f.account(NotKept, "", fmt.Sprintf(format, args...))
}

// Other says that the field is none of croft's business.
func (f Field) Other(format string, args ...any) { f.account(Other, "", fmt.Sprintf(format, args...)) }

// Unset says that what it meant not to write a field is written out now.
func (f Field) Unset(to, format string, args ...any) {
	f.unwritten(Kept, to, fmt.Sprintf(format, args...))
}

// UnsetChanged says that not to write a field meant something else than it does now.
func (f Field) UnsetChanged(to, format string, args ...any) {
	f.unwritten(Changed, to, fmt.Sprintf(format, args...))
}

func (f Field) unwritten(outcome Outcome, to, message string) {
	if f.object == nil {
		return
	}
	for _, e := range f.object.unset {
		if slices.Equal(e.path, f.path) && slices.Contains(e.messages, message) {
			if !slices.Contains(e.to, to) {
				e.to = append(e.to, to)
			}
			return
		}
	}
	f.object.unset = append(f.object.unset, &entry{path: f.path, outcome: outcome, to: []string{to}, messages: []string{message}})
}

// findings accounts for every value of the object: each is under the deepest
// entry that something was said of, and under one that says so if nothing was.
func (o *Object) findings() []Finding {
	counts := map[string]int{}
	extra := map[string]*entry{}
	o.leaves(func(path []string) {
		for depth := len(path); depth >= 0; depth-- {
			key := strings.Join(path[:depth], "\x00")
			if _, said := o.entries[key]; said {
				counts[key]++
				return
			}
		}
		key := strings.Join(path, "\x00")
		extra[key] = &entry{path: path, outcome: NotKept, messages: []string{unknown}}
		counts[key]++
	})
	maps.Copy(extra, o.entries)
	var all []Finding
	for key, e := range extra {
		if counts[key] == 0 && len(e.messages) == 0 {
			continue // everything in it was said by itself
		}
		e.leaves = counts[key]
		all = append(all, o.finding(e, true))
	}
	slices.SortFunc(all, func(a, b Finding) int {
		if a.Line != b.Line {
			return a.Line - b.Line
		}
		return strings.Compare(a.Field, b.Field)
	})
	for _, e := range o.unset {
		all = append(all, o.finding(e, false))
	}
	return all
}

func (o *Object) finding(e *entry, written bool) Finding {
	f := Finding{
		Outcome: e.outcome, File: o.File, Object: o.ID(), Field: fieldPath(e.path), To: e.to,
		Message: strings.Join(e.messages, "; "), Leaves: e.leaves,
	}
	if o.line != nil {
		f.Line = o.line(e.path...)
	}
	if written && len(e.path) > 0 {
		f.Value = abridged(o.value(e.path))
	}
	return f
}

// value is what is at a path.
func (o *Object) value(path []string) any {
	var v any = o.Content
	for _, step := range path {
		switch around := v.(type) {
		case map[string]any:
			v = around[step]
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i >= len(around) {
				return nil
			}
			v = around[i]
		}
	}
	return v
}

// leaves calls do for every value that holds no others.
func (o *Object) leaves(do func(path []string)) { walk(o.Content, nil, do) }

func walk(v any, path []string, do func([]string)) {
	switch v := v.(type) {
	case map[string]any:
		if len(v) > 0 {
			for _, key := range slices.Sorted(maps.Keys(v)) {
				walk(v[key], append(path[:len(path):len(path)], key), do)
			}
			return
		}
	case []any:
		if len(v) > 0 {
			for i := range v {
				walk(v[i], append(path[:len(path):len(path)], strconv.Itoa(i)), do)
			}
			return
		}
	}
	do(path)
}

// abridged keeps a value to what fits into a line.
func abridged(v any) string {
	text, ok := v.(string)
	if !ok {
		data, err := json.Marshal(v)
		if err != nil {
			return ""
		}
		text = string(data)
	}
	text = strings.Join(strings.Fields(text), " ")
	if runes := []rune(text); len(runes) > 80 {
		return string(runes[:79]) + "…"
	}
	return text
}
