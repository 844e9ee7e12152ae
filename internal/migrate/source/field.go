package source

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"croft.dev/croft/internal/manifest"
)

// Field is a set or unset field of an object. Its outcome applies to everything in it
// without an outcome of its own.
type Field struct {
	object *Object
	path   []string
	value  any
	found  bool
}

// Object is the object that the field is of; nil for no field.
func (f Field) Object() *Object { return f.object }

// Value is the field's value: nil, a bool, string, int64, float64, []any or
// map[string]any.
func (f Field) Value() any { return f.value }

// With is the field as if it held another value.
func (f Field) With(value any) Field { return Field{f.object, f.path, value, true} }

// Problem is one of the field, where it was written.
func (f Field) Problem(format string, args ...any) manifest.Problem {
	return f.object.Problem(f.path, format, args...)
}

// At follows keys into mappings.
func (f Field) At(keys ...string) Field {
	for _, key := range keys {
		around, _ := f.value.(map[string]any)
		value, found := around[key]
		f = Field{f.object, append(slices.Clone(f.path), key), value, found}
	}
	return f
}

// Apart is the field of a copy of its object: its outcomes do not affect the object's.
func (f Field) Apart() Field {
	if f.object != nil {
		o := *f.object
		o.entries, o.unset = map[string]*entry{}, nil
		f.object = &o
	}
	return f
}

// Found says whether the field was written, with a value.
func (f Field) Found() bool { return f.found && f.value != nil }

// Path is the field as people write it.
func (f Field) Path() string { return FieldPath(f.path) }

// Key is the last step of the path.
func (f Field) Key() string {
	if len(f.path) == 0 {
		return ""
	}
	return f.path[len(f.path)-1]
}

// Items are the elements of a list.
func (f Field) Items() []Field {
	list, _ := f.value.([]any)
	items := make([]Field, len(list))
	for i, v := range list {
		items[i] = Field{f.object, append(slices.Clone(f.path), strconv.Itoa(i)), v, true}
	}
	return items
}

// Fields are the entries of a mapping, by their keys.
func (f Field) Fields() []Field {
	around, _ := f.value.(map[string]any)
	fields := make([]Field, 0, len(around))
	for _, key := range slices.Sorted(maps.Keys(around)) {
		fields = append(fields, f.At(key))
	}
	return fields
}

// Text is a scalar as it would be written; "" for anything else.
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

// Number is a whole number.
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

// True says whether the field is true.
func (f Field) True() bool { return f.value == true || f.value == "true" }

// Texts are the scalars of a list; a scalar by itself is a list of one.
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

// TextMap is a mapping from text to text.
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

// Into decodes the field into a typed value.
func (f Field) Into(typed any) error {
	data, err := json.Marshal(f.value)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, typed)
}

// FieldPath writes a path as people do: spec.taints[0].key, or
// metadata.labels["a.b/c"] where a key has dots of its own.
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
