package source

import (
	"fmt"
	"slices"
	"strings"
)

// Outcome is the outcome of the migration of a field.
type Outcome string

// These are the outcomes, the most urgent last.
const (
	// Other fields are out of croft's scope.
	Other Outcome = "other"
	// Kept fields have the same meaning in croft.yaml.
	Kept Outcome = "kept"
	// Changed fields have another meaning, which the message explains.
	Changed Outcome = "changed"
	// MarkNotKept fields cannot be expressed in croft.yaml; the message gives the reason and the
	// remedy.
	NotKept Outcome = "notKept"
)

var outcomes = []Outcome{Other, Kept, Changed, NotKept}

// Finding is the outcome of one field, or of all fields in it without their own outcome.
type Finding struct {
	Outcome Outcome `json:"outcome"`
	File    string  `json:"file"`
	Line    int     `json:"line,omitempty"`
	Object  string  `json:"object"`
	// Field is the path in the object. It is empty for the object as a whole.
	Field string `json:"field,omitempty"`
	// Value is the field's value, shortened. It is empty for an unset field.
	Value string `json:"value,omitempty"`
	// To are the resulting fields, such as pools.jobs.ttl.
	To      []string `json:"to,omitempty"`
	Message string   `json:"message,omitempty"`
	// Leaves is the number of values of the finding.
	Leaves int `json:"leaves"`
}

// unknown is the message for fields without an outcome.
const unknown = "croft migrate does not know this field: check whether you need it, and if so keep the object"

// entry is the outcome of a path.
type entry struct {
	path     []string
	outcome  Outcome
	to       []string
	messages []string
	leaves   int
	// general means that the outcome was set for all fields of a kind. An outcome that is set
	// for this field replaces it.
	general bool
}

// markGeneral marks the field's last outcome as one for all fields of its kind.
func (f Field) markGeneral() {
	if e, ok := f.object.entries[f.key()]; ok {
		e.general = true
	}
}

func (f Field) key() string { return strings.Join(f.path, "\x00") }

// HasOutcome reports whether the field has an outcome.
func (f Field) HasOutcome() bool {
	_, ok := f.object.entries[f.key()]
	return ok
}

// Account sets the outcome of the field, with its new field, if any, and the reason, if the
// user needs it. An unset field gets none.
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
	// If two readers account for one field, for example of a template that several pools share,
	// their messages are combined, under the more urgent outcome.
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

// MarkKept records that the field has the same meaning as a field of croft.yaml.
func (f Field) MarkKept(to string) { f.Account(Kept, to, "") }

// MarkKeptAs is like Kept, with an explanation.
func (f Field) MarkKeptAs(to, format string, args ...any) {
	f.Account(Kept, to, fmt.Sprintf(format, args...))
}

// MarkChanged records that the field was converted into a field with another meaning.
func (f Field) MarkChanged(to, format string, args ...any) {
	f.Account(Changed, to, fmt.Sprintf(format, args...))
}

// MarkNotKept records why the field cannot be expressed, with the remedy.
func (f Field) MarkNotKept(format string, args ...any) {
	f.Account(NotKept, "", fmt.Sprintf(format, args...))
}

// MarkOther records that the field is out of croft's scope.
func (f Field) MarkOther(format string, args ...any) {
	f.Account(Other, "", fmt.Sprintf(format, args...))
}

// MarkUnset records that the default of an unset field is now explicit.
func (f Field) MarkUnset(to, format string, args ...any) {
	f.addUnset(Kept, to, fmt.Sprintf(format, args...))
}

// MarkUnsetChanged records that the default of an unset field has changed.
func (f Field) MarkUnsetChanged(to, format string, args ...any) {
	f.addUnset(Changed, to, fmt.Sprintf(format, args...))
}

func (f Field) addUnset(outcome Outcome, to, message string) {
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
