package manifest

import (
	"strconv"
	"strings"

	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
)

// The validators name fields by paths that do not tell the dots between keys from those
// in keys. A reader of a path therefore needs the thing that it leads through: nodes
// (descend), values (follow) or a schema (deepest).

// follow returns the value that a plain path leads to, and the entry to delete to
// be rid of it: its own or, since a list must keep its length, that of the list
// around it. The mapping is nil if the path leads nowhere.
func follow(v any, path string) (at any, in map[string]any, key string) {
	for path != "" {
		switch around := v.(type) {
		case map[string]any:
			next, ok := longest(around, path)
			if !ok {
				return nil, nil, ""
			}
			in, key, v = around, next, around[next]
			path = strings.TrimPrefix(path[len(plainKey(next)):], ".")
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

// longest is the longest key of a mapping that a plain path can begin with.
func longest[V any](mapping map[string]V, path string) (key string, ok bool) {
	for k := range mapping {
		if begins(path, plainKey(k)) && (!ok || len(k) > len(key)) {
			key, ok = k, true
		}
	}
	return key, ok
}

// begins says whether a plain path begins with a plain key.
func begins(path, key string) bool {
	return path == key || strings.HasPrefix(path, key+".")
}

// deepest follows a path through the schema for as long as it is known, and
// returns the schema reached and the rest of the path.
func (c *compiled) deepest(field string) (*structural.Structural, string) {
	s, path := c.structure, plainPath(field)
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
				path = "" // of maps of plain values, the rest of the path is one key
			}
		default:
			key, ok := longest(s.Properties, path)
			if !ok {
				return s, path
			}
			next := s.Properties[key]
			s, path = &next, strings.TrimPrefix(path[len(plainKey(key)):], ".")
		}
	}
	return s, ""
}
