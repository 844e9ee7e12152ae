package manifest

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
)

// place is a field of an object whose value its schema refuses. Advice is validated here before
// it is given: advice that the schema would refuse again is useless.
type place struct {
	schema *compiled
	obj    map[string]any
	// path is a plain path; see plainPath.
	path string
}

// takes reports whether the schema accepts a value in this place.
func (p place) takes(v any) bool {
	return p.accepts(replaced(p.obj, p.path, func(any) (any, bool) { return v, true }))
}

// canGo reports whether the schema accepts the object without the field, or the list without
// the item.
func (p place) canGo() bool {
	return p.accepts(replaced(p.obj, p.path, func(any) (any, bool) { return nil, false }))
}

// accepts reports whether a changed object has no errors in this place, and no new ones around
// it.
func (p place) accepts(changed any) bool {
	obj, ok := changed.(map[string]any)
	if !ok {
		return false
	}
	already := map[string]bool{}
	for _, e := range p.schema.errors(p.obj) {
		already[e.Error()] = true
	}
	return !slices.ContainsFunc(p.schema.errors(obj), func(e *field.Error) bool {
		at := plainPath(e.Field)
		return begins(at, p.path) || !already[e.Error()] && (at == rootPath || begins(p.path, at))
	})
}

// errors returns the errors of types, bounds and rules.
func (c *compiled) errors(obj map[string]any) field.ErrorList {
	broken, _ := c.rules.Validate(context.Background(), nil, c.structure, obj, nil, celconfig.RuntimeCELCostBudget)
	return append(c.values(obj), broken...)
}

// replaced returns a value in which the value at a plain path is replaced or removed. It copies
// only the values on the path.
func replaced(v any, path string, change func(any) (value any, keep bool)) any {
	switch around := v.(type) {
	case map[string]any:
		key, ok := longest(around, path)
		if !ok {
			return v
		}
		copied := maps.Clone(around)
		if rest := strings.TrimPrefix(path[len(plainKey(key)):], "."); rest != "" {
			copied[key] = replaced(around[key], rest, change)
		} else if value, keep := change(around[key]); keep {
			copied[key] = value
		} else {
			delete(copied, key)
		}
		return copied
	case []any:
		step, rest, _ := strings.Cut(path, ".")
		i, err := strconv.Atoi(step)
		if err != nil || i < 0 || i >= len(around) {
			return v
		}
		copied := slices.Clone(around)
		if rest != "" {
			copied[i] = replaced(around[i], rest, change)
		} else if value, keep := change(around[i]); keep {
			copied[i] = value
		} else {
			copied = slices.Delete(copied, i, i+1)
		}
		return copied
	}
	return v
}
