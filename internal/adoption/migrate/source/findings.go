package source

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Findings returns findings that account for every value of the object: each value belongs to
// the deepest entry with an outcome, or is reported as unknown.
func (o *Object) Findings() []Finding {
	counts := map[string]int{}
	extra := map[string]*entry{}
	o.VisitLeaves(func(f Field) {
		path := f.path
		for depth := len(path); depth >= 0; depth-- {
			key := strings.Join(path[:depth], "\x00")
			if _, ok := o.entries[key]; ok {
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
			continue // all of its values have their own outcomes
		}
		e.leaves = counts[key]
		all = append(all, o.buildFinding(e, true))
	}
	slices.SortFunc(all, func(a, b Finding) int {
		if a.Line != b.Line {
			return a.Line - b.Line
		}
		return strings.Compare(a.Field, b.Field)
	})
	for _, e := range o.unset {
		all = append(all, o.buildFinding(e, false))
	}
	return all
}

func (o *Object) buildFinding(e *entry, written bool) Finding {
	f := Finding{
		Outcome: e.outcome, File: o.File, Object: o.ID(), Field: FieldPath(e.path), To: e.to,
		Message: strings.Join(e.messages, "; "), Leaves: e.leaves,
	}
	if o.line != nil {
		f.Line = o.line(e.path...)
	}
	if written && len(e.path) > 0 {
		f.Value = Abridge(o.ValueAt(e.path))
	}
	return f
}

// ListUnknown returns the topmost fields without an outcome: this field, or fields in it.
func (f Field) ListUnknown() []Field {
	if f.HasOutcome() {
		return nil
	}
	inner := f.key() + "\x00"
	if !slices.ContainsFunc(slices.Collect(maps.Keys(f.object.entries)), func(key string) bool { return strings.HasPrefix(key, inner) }) {
		return []Field{f}
	}
	var all []Field
	for _, field := range append(f.Fields(), f.Items()...) {
		all = append(all, field.ListUnknown()...)
	}
	return all
}

// ValueAt returns the value at a path.
func (o *Object) ValueAt(path []string) any {
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

// VisitLeaves calls do for every value that contains no other values.
func (o *Object) VisitLeaves(do func(Field)) { visitField(o.Root(), do) }

func visitField(f Field, do func(Field)) {
	inner := append(f.Fields(), f.Items()...)
	for _, f := range inner {
		visitField(f, do)
	}
	if len(inner) == 0 {
		do(f)
	}
}

// Abridge shortens a value to fit into a line.
func Abridge(v any) string {
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
