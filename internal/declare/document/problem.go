package document

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Severity distinguishes errors, warnings and notes.
type Severity string

// These are the severities for accepted values. A Problem without a severity is an error.
const (
	// SeverityWarning marks values that are most likely mistakes.
	SeverityWarning Severity = "warning"
	// SeverityNote marks correct values with an effect that is not obvious.
	SeverityNote Severity = "note"
)

// Problem is one error or warning, for the author of the object.
type Problem struct {
	// Severity is empty for an error.
	Severity Severity
	// Kind and Name identify the refused object. Both are empty if the error in a file does not
	// concern a single object; only Name is empty if the object has none.
	Kind, Name string
	// Field is the path in the object, such as spec.emptyTTL. It is empty for the object as a
	// whole.
	Field string
	// Message is the error and the remedy.
	Message string

	// Live means that the object is in the cluster, and not in the file.
	Live bool
	// File and Line are the position of the field. File is empty for objects from the API
	// server; Line is 0 if no line is the cause.
	File string
	Line int
	// Path is the field as written in the compact form, such as pools.jobs.emptyTTL.
	Path string
}

// Error returns the position and the message on one line:
//
//	croft.yaml:12: pools.jobs.emptyTTL: the number 10 is not allowed; write …
//	Tenant/shop: spec.pool: …
//	croft.yaml:12: pools.jobs.ttl: warning: …
//	in the cluster, not in this file: Tenant/shop: spec.pool: …
func (p Problem) Error() string {
	var parts []string
	if p.Live {
		parts = append(parts, "in the cluster, not in this file")
	}
	if p.File != "" {
		place := p.File
		if p.Line > 0 {
			place = fmt.Sprintf("%s:%d", p.File, p.Line)
		}
		parts = append(parts, place)
	}
	switch {
	case p.Path != "":
		parts = append(parts, p.Path)
	case p.Kind != "":
		id := p.Kind
		if p.Name != "" {
			id += "/" + p.Name
		}
		parts = append(parts, id)
		if p.Field != "" {
			parts = append(parts, p.Field)
		}
	}
	if p.Severity != "" {
		parts = append(parts, string(p.Severity))
	}
	line := strings.Join(append(parts, p.Message), ": ")
	return oneLine.Replace(line)
}

// oneLine escapes line breaks in names, which would break the list of problems.
var oneLine = strings.NewReplacer("\n", `\n`, "\r", `\r`)

// Problems is a list of problems. An empty list is a non-nil error once it is stored in a
// variable of type error: use Err.
type Problems []Problem

// Error returns one line for each problem.
func (ps Problems) Error() string {
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.Error()
	}
	return strings.Join(lines, "\n")
}

// Err returns nil if there are no problems.
func (ps Problems) Err() error {
	if len(ps) == 0 {
		return nil
	}
	return ps
}

// Without returns the problems of all severities except one.
func (ps Problems) Without(severity Severity) Problems {
	return slices.DeleteFunc(slices.Clone(ps), func(p Problem) bool { return p.Severity == severity })
}

// ForObject returns the problems of one object.
func (ps Problems) ForObject(kind, name string) Problems {
	var of Problems
	for _, p := range ps {
		if p.Kind == kind && p.Name == name {
			of = append(of, p)
		}
	}
	return of
}

// Sorted returns the problems in the order of the files.
func (ps Problems) Sorted() Problems {
	slices.SortStableFunc(ps, func(a, b Problem) int {
		return cmp.Or(
			cmp.Compare(a.File, b.File),
			cmp.Compare(a.Line, b.Line),
			cmp.Compare(a.Kind, b.Kind),
			cmp.Compare(a.Name, b.Name),
			cmp.Compare(a.Field, b.Field),
			cmp.Compare(a.Message, b.Message),
		)
	})
	return ps
}
