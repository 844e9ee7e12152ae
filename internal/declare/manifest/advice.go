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
	schema *compiledSchema
	obj    map[string]any
	// path is a plain path; see normalizePath.
	path string
}

// acceptsValue reports whether the schema accepts a value in this place.
func (p place) acceptsValue(v any) bool {
	return p.acceptsObject(replaceAt(p.obj, p.path, func(any) (any, bool) { return v, true }))
}

// canBeRemoved reports whether the schema accepts the object without the field, or the list without
// the item.
func (p place) canBeRemoved() bool {
	return p.acceptsObject(replaceAt(p.obj, p.path, func(any) (any, bool) { return nil, false }))
}

// acceptsObject reports whether a changed object has no errors in this place, and no new ones around
// it.
func (p place) acceptsObject(changed any) bool {
	obj, ok := changed.(map[string]any)
	if !ok {
		return false
	}
	already := map[string]bool{}
	for _, e := range p.schema.listErrors(p.obj) {
		already[e.Error()] = true
	}
	return !slices.ContainsFunc(p.schema.listErrors(obj), func(e *field.Error) bool {
		at := normalizePath(e.Field)
		return hasPathPrefix(at, p.path) || !already[e.Error()] && (at == rootPath || hasPathPrefix(p.path, at))
	})
}

// listErrors returns the errors of types, bounds and rules.
func (c *compiledSchema) listErrors(obj map[string]any) field.ErrorList {
	broken, _ := c.rules.Validate(context.Background(), nil, c.structure, obj, nil, celconfig.RuntimeCELCostBudget)
	return append(c.checkValues(obj), broken...)
}

// replaceAt returns a value in which the value at a plain path is replaced or removed. It copies
// only the values on the path.
func replaceAt(v any, path string, change func(any) (value any, keep bool)) any {
	switch around := v.(type) {
	case map[string]any:
		key, ok := findLongestMatch(around, path)
		if !ok {
			return v
		}
		copied := maps.Clone(around)
		if rest := strings.TrimPrefix(path[len(normalizeKey(key)):], "."); rest != "" {
			copied[key] = replaceAt(around[key], rest, change)
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
			copied[i] = replaceAt(around[i], rest, change)
		} else if value, keep := change(around[i]); keep {
			copied[i] = value
		} else {
			copied = slices.Delete(copied, i, i+1)
		}
		return copied
	}
	return v
}
