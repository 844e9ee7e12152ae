package source

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"croft.dev/croft/internal/declare/document"
)

// Field is a set or unset field of an object. Its outcome applies to everything in it without
// its own outcome.
type Field struct {
	object *Object
	path   []string
	value  any
	found  bool
}

// Object returns the object of the field, or nil for the zero Field.
func (f Field) Object() *Object { return f.object }

// Value returns the field's value: nil, a bool, string, int64, float64, []any or
// map[string]any.
func (f Field) Value() any { return f.value }

// WithValue returns the field as if it had another value.
func (f Field) WithValue(value any) Field { return Field{f.object, f.path, value, true} }

// Problem returns a problem of the field, with its location in the input.
func (f Field) Problem(format string, args ...any) document.Problem {
	return f.object.Problem(f.path, format, args...)
}

// At returns the field at a path of keys of nested mappings.
func (f Field) At(keys ...string) Field {
	for _, key := range keys {
		around, _ := f.value.(map[string]any)
		value, found := around[key]
		f = Field{f.object, append(slices.Clone(f.path), key), value, found}
	}
	return f
}

// Detach returns the field in a copy of its object: its outcomes do not affect the original.
func (f Field) Detach() Field {
	if f.object != nil {
		o := *f.object
		o.entries, o.unset = map[string]*entry{}, nil
		f.object = &o
	}
	return f
}

// Found reports whether the field is set to a value.
func (f Field) Found() bool { return f.found && f.value != nil }

// Path returns the field's path for messages.
func (f Field) Path() string { return FieldPath(f.path) }

// Key returns the last step of the path.
func (f Field) Key() string {
	if len(f.path) == 0 {
		return ""
	}
	return f.path[len(f.path)-1]
}

// Parent returns the step before the last of the path.
func (f Field) Parent() string {
	if len(f.path) < 2 {
		return ""
	}
	return f.path[len(f.path)-2]
}

// Items returns the elements of a list.
func (f Field) Items() []Field {
	list, _ := f.value.([]any)
	items := make([]Field, len(list))
	for i, v := range list {
		items[i] = Field{f.object, append(slices.Clone(f.path), strconv.Itoa(i)), v, true}
	}
	return items
}

// Fields returns the entries of a mapping, sorted by key.
func (f Field) Fields() []Field {
	around, _ := f.value.(map[string]any)
	fields := make([]Field, 0, len(around))
	for _, key := range slices.Sorted(maps.Keys(around)) {
		fields = append(fields, f.At(key))
	}
	return fields
}

// Text returns a scalar as it is written in YAML, or "" for any other value.
func (f Field) Text() string {
	switch v := f.value.(type) {
	case string:
		return v
	case bool:
		return strconv.FormatBool(v)
	case int64:
		return strconv.FormatInt(v, 10)
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	default:
		return ""
	}
}

// Number returns an integer, and whether the value is one.
func (f Field) Number() (int64, bool) {
	switch v := f.value.(type) {
	case int64:
		return v, true
	case float64:
		return int64(v), v == float64(int64(v))
	case string:
		n, err := strconv.ParseInt(v, 10, 64)
		return n, err == nil
	default:
		return 0, false
	}
}

// IsTrue reports whether the field is true.
func (f Field) IsTrue() bool { return f.value == true || f.value == "true" }

// Texts returns the scalars of a list. A single scalar is a list of one.
func (f Field) Texts() []string {
	if text := f.Text(); text != "" {
		return []string{text}
	}
	var all []string
	for _, item := range f.Items() {
		if text := item.Text(); text != "" || item.value == "" {
			all = append(all, text)
		}
	}
	return all
}

// TextMap returns a mapping of strings.
func (f Field) TextMap() map[string]string {
	var all map[string]string
	for _, entry := range f.Fields() {
		if all == nil {
			all = map[string]string{}
		}
		all[entry.Key()] = entry.Text()
	}
	return all
}

// Decode decodes the field into a typed value.
func (f Field) Decode(typed any) error {
	data, err := json.Marshal(f.value)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, typed)
}

// FieldPath formats a path: spec.taints[0].key, or metadata.labels["a.b/c"] if a key contains
// dots.
func FieldPath(path []string) string {
	var b strings.Builder
	for _, step := range path {
		switch _, err := strconv.Atoi(step); {
		case err == nil && b.Len() > 0:
			fmt.Fprintf(&b, "[%s]", step)
		case strings.ContainsAny(step, ". /[]"):
			fmt.Fprintf(&b, "[%q]", step)
		case b.Len() > 0:
			b.WriteString("." + step)
		default:
			b.WriteString(step)
		}
	}
	return b.String()
}
