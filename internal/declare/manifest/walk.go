package manifest

import (
	"strconv"
	"strings"

	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
)

// The validators' paths do not distinguish dots between keys from dots in keys. To interpret a
// path, one needs the structure that it leads through: nodes (descend), values (follow) or a
// schema (deepest).

// followPath returns the value at a plain path, and the entry to delete to remove it: its own entry
// or, since a list must keep its length, the entry of the list. The mapping is nil if there is
// nothing at the path.
func followPath(v any, path string) (at any, in map[string]any, key string) {
	for path != "" {
		switch around := v.(type) {
		case map[string]any:
			next, ok := findLongestMatch(around, path)
			if !ok {
				return nil, nil, ""
			}
			in, key, v = around, next, around[next]
			path = strings.TrimPrefix(path[len(normalizeKey(next)):], ".")
		case []any:
			step, rest, _ := strings.Cut(path, ".")
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(around) {
				return nil, nil, ""
			}
			v, path = around[i], rest
		default:
			return nil, nil, ""
		}
	}
	return v, in, key
}

// findLongestMatch returns the longest key of a mapping with which a plain path begins.
func findLongestMatch[V any](mapping map[string]V, path string) (key string, ok bool) {
	for k := range mapping {
		if hasPathPrefix(path, normalizeKey(k)) && (!ok || len(k) > len(key)) {
			key, ok = k, true
		}
	}
	return key, ok
}

// hasPathPrefix reports whether a plain path begins with a plain key.
func hasPathPrefix(path, key string) bool {
	return path == key || strings.HasPrefix(path, key+".")
}

// findDeepestSchema follows a path through the schema as far as it is known. It returns the schema that
// it reached and the rest of the path.
func (c *compiledSchema) findDeepestSchema(field string) (*structural.Structural, string) {
	s, path := c.structure, normalizePath(field)
	for path != "" && path != rootPath {
		step, rest, _ := strings.Cut(path, ".")
		switch {
		case s.Items != nil:
			if _, err := strconv.Atoi(step); err != nil {
				return s, path
			}
			s, path = s.Items, rest
		case s.AdditionalProperties != nil && s.AdditionalProperties.Structural != nil:
			s = s.AdditionalProperties.Structural
			if len(s.Properties) > 0 {
				path = rest // the keys of maps of objects are names without dots
			} else {
				path = "" // in maps of plain values, the rest of the path is one key
			}
		default:
			key, ok := findLongestMatch(s.Properties, path)
			if !ok {
				return s, path
			}
			next := s.Properties[key]
			s, path = &next, strings.TrimPrefix(path[len(normalizeKey(key)):], ".")
		}
	}
	return s, ""
}
