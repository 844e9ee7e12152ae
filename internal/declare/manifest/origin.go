package manifest

import (
	"fmt"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"croft.dev/croft/internal/declare/document"
)

// origin is the position of an object in a file. It keeps the nodes of the document, so that
// the line of a field is only determined for a problem.
type origin struct {
	file string
	name string
	// line is the line of the object.
	line int
	// node is the root of field paths: the whole object, or in the compact form its spec.
	node *yaml.Node
	// path is the object's path in the compact form, such as pools.jobs. It is empty for an
	// object of a stream.
	path string
	// declared is the object as written, without defaults.
	declared map[string]any
}

// locateProblem sets the position of a problem's field. If the field is not written, for example
// because it is missing, the position is the nearest parent's.
func (o *origin) locateProblem(p *document.Problem) {
	p.File, p.Line = o.file, o.line
	rest := normalizePath(p.Field)
	if o.path == "" {
		p.Line, _ = followNode(o.node, rest, o.line, "")
		return
	}
	// The compact form has no metadata: its key is the name.
	p.Path = o.path
	if spec, ok := strings.CutPrefix(rest, "spec."); ok {
		p.Line, p.Path = followNode(o.node, spec, o.line, o.path)
	}
}

// formatLocation returns the object's file and line in parentheses, for the end of a message about
// another object. It is empty for objects from the API server.
func (o *origin) formatLocation() string {
	if o == nil {
		return ""
	}
	return fmt.Sprintf(" (%s:%d)", o.file, o.line)
}

// normalizePath normalizes field paths, since the validators' notations differ: limits[cpu],
// limits.cpu and zones[0] become limits.cpu and zones.0.
func normalizePath(field string) string {
	return strings.Trim(bracketless.Replace(field), ".")
}

var bracketless = strings.NewReplacer("[", ".", "]", "")

// followNode follows a plain path as far as it is written. It returns the last line on the path,
// and the whole path in the notation for users.
func followNode(n *yaml.Node, rest string, line int, path string) (int, string) {
	for rest != "" && n != nil {
		var step string
		switch n.Kind {
		case yaml.MappingNode:
			key, value := findLongestKey(n, rest)
			if key == nil {
				return line, appendPath(path, rest)
			}
			step, line, n = key.Value, key.Line, value
			path = document.JoinPath(path, step)
		case yaml.SequenceNode:
			step, _, _ = strings.Cut(rest, ".")
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(n.Content) {
				return line, appendPath(path, rest)
			}
			n = n.Content[i]
			line = n.Line
			path += "[" + step + "]"
		default:
			return line, appendPath(path, rest)
		}
		rest = strings.TrimPrefix(rest[len(normalizeKey(step)):], ".")
	}
	return line, path
}

// findLongestKey returns the entry with which a path continues. Keys may contain dots, so the
// longest matching one is used.
func findLongestKey(n *yaml.Node, rest string) (key, value *yaml.Node) {
	for i := 0; i+1 < len(n.Content); i += 2 {
		k := n.Content[i]
		if hasPathPrefix(rest, normalizeKey(k.Value)) && (key == nil || len(k.Value) > len(key.Value)) {
			key, value = k, n.Content[i+1]
		}
	}
	return key, value
}

func normalizeKey(key string) string { return bracketless.Replace(key) }

// appendPath appends the unset part of a path.
func appendPath(path, rest string) string {
	if path == "" {
		return rest
	}
	return path + "." + rest
}
