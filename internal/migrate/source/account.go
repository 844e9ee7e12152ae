package source

import (
	"fmt"
	"slices"
	"strings"
)

// Outcome is what became of a field.
type Outcome string

// The outcomes, the most urgent last.
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

// Finding is the outcome of one field, or of all fields in it without an outcome of
// their own.
type Finding struct {
	Outcome Outcome `json:"outcome"`
	File    string  `json:"file"`
	Line    int     `json:"line,omitempty"`
	Object  string  `json:"object"`
	// Field is the path in the object; empty for the object as a whole.
	Field string `json:"field,omitempty"`
	// Value is the field's value, abridged; empty for an unset field.
	Value string `json:"value,omitempty"`
	// To are the fields that it went to, such as pools.jobs.ttl.
	To      []string `json:"to,omitempty"`
	Message string   `json:"message,omitempty"`
	// Leaves is the number of values of the finding.
	Leaves int `json:"leaves"`
}

// unknown is the text for fields without an outcome.
const unknown = "croft migrate does not know this field: look whether you need it, and keep the object that has it if so"

// entry is the outcome of a path.
type entry struct {
	path     []string
	outcome  Outcome
	to       []string
	messages []string
	leaves   int
	// general says that the outcome was set for all fields of a kind, so that one of
	// this field in particular replaces it.
	general bool
}

// markGeneral marks the field's last outcome as one for all fields of its kind.
func (f Field) markGeneral() {
	if e, ok := f.object.entries[f.key()]; ok {
		e.general = true
	}
}

func (f Field) key() string { return strings.Join(f.path, "\x00") }

// Said reports whether the field has an outcome.
func (f Field) Said() bool {
	_, ok := f.object.entries[f.key()]
	return ok
}

// Account sets the outcome of the field: its new field, if any, and the reason, if a
// person needs it. An unset field gets none.
func (f Field) Account(outcome Outcome, to, message string) {
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
func (f Field) Kept(to string) { f.Account(Kept, to, "") }

// KeptAs is Kept with a word of how.
func (f Field) KeptAs(to, format string, args ...any) {
	f.Account(Kept, to, fmt.Sprintf(format, args...))
}

// Changed says that the field became one with another meaning.
func (f Field) Changed(to, format string, args ...any) {
	f.Account(Changed, to, fmt.Sprintf(format, args...))
}

// NotKept says why the field has no place, and what to do.
func (f Field) NotKept(format string, args ...any) {
	f.Account(NotKept, "", fmt.Sprintf(format, args...))
}

// Other says that the field is none of croft's business.
func (f Field) Other(format string, args ...any) { f.Account(Other, "", fmt.Sprintf(format, args...)) }

// Unset says that the meaning of an unset field is now written out.
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
