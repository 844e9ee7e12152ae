package document

import (
	"fmt"
	"math"
	"strings"

	"go.yaml.in/yaml/v3"
)

// maxAliased is the maximum number of values of a document after expanding its aliases. A few
// lines of aliases to aliases can expand to more values than fit into memory.
const maxAliased = 1_000_000

// Simplify reduces the nodes of one document to mappings, sequences and scalars, so that later
// code need not support YAML's other features: aliases are replaced by their values, merge keys
// by their entries, and keys are unique. Errors are reported, and their nodes are left out.
func Simplify(file string, doc *yaml.Node) Problems {
	s := simplifier{file: file, sizes: map[*yaml.Node]int{}}
	if size := s.simplifyNode(doc, nil); len(s.sizes) > 0 && max(size, s.merged) > maxAliased {
		s.reportProblem(doc, nil, "the aliases in this document expand to more than %d values; write the values without aliases", maxAliased)
		doc.Content = nil
	}
	return s.problems
}

type simplifier struct {
	file string
	// sizes is the number of values of each node with an anchor, or unfinished while the node
	// is being visited. All other nodes are visited once.
	sizes map[*yaml.Node]int
	// merged counts the entries that merge keys add.
	merged   int
	problems Problems
}

const unfinished = -1

func (s *simplifier) reportProblem(at *yaml.Node, path *trail, format string, args ...any) {
	s.problems = append(s.problems, Problem{File: s.file, Line: at.Line, Path: path.String(), Message: fmt.Sprintf(format, args...)})
}

// trail is the path to a node. It is formatted only for a problem: in a large document that
// would take longer than everything else.
type trail struct {
	up    *trail
	key   string
	index int // if key is empty
}

func (t *trail) String() string {
	if t == nil {
		return ""
	}
	if t.key == "" {
		return fmt.Sprintf("%s[%d]", t.up, t.index)
	}
	return JoinPath(t.up.String(), t.key)
}

// simplifyNode simplifies a node and everything in it, and returns the number of its values.
func (s *simplifier) simplifyNode(n *yaml.Node, path *trail) int {
	if size, known := s.sizes[n]; known {
		return size
	}
	if n.Anchor != "" {
		s.sizes[n] = unfinished
	}
	size := 1
	switch n.Kind {
	case yaml.DocumentNode:
		size += s.resolveAlias(&n.Content[0], path)
	case yaml.SequenceNode:
		for i := range n.Content {
			size = capSize(size + s.resolveAlias(&n.Content[i], &trail{up: path, index: i}))
		}
	case yaml.MappingNode:
		size += s.simplifyEntries(n, path)
	case yaml.ScalarNode:
		s.checkTag(n, path)
	case yaml.AliasNode: // replace has followed it to its target
	}
	if n.Anchor != "" {
		s.sizes[n] = size
	}
	return size
}

// resolveAlias simplifies a node, or replaces an alias by its target.
func (s *simplifier) resolveAlias(at **yaml.Node, path *trail) int {
	n := *at
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	size := s.simplifyNode(n, path)
	if size == unfinished {
		s.reportProblem(*at, path, "the alias *%s refers to itself; write the values without this alias", (*at).Value)
		n, size = &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Line: (*at).Line}, 1
	}
	*at = n
	return size
}

// capSize keeps a size from overflowing. A size that is too large remains so.
func capSize(size int) int { return min(size, 2*maxAliased) }

// simplifyEntries makes the keys of a mapping unique and expands its merge keys. It returns the number
// of values of the mapping.
func (s *simplifier) simplifyEntries(n *yaml.Node, path *trail) int {
	size := 0
	written := make([]*yaml.Node, 0, len(n.Content))
	var merges []*yaml.Node
	lines := make(map[string]int, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		for key.Kind == yaml.AliasNode {
			key = key.Alias
		}
		switch {
		case key.Kind != yaml.ScalarNode:
			s.reportProblem(key, path, "a key must be a plain word")
			continue
		case key.ShortTag() == "!!merge":
			size = capSize(size + s.resolveAlias(&value, path))
			merges = append(merges, value)
			continue
		case key.ShortTag() == "!!null":
			s.reportProblem(key, path, "there is no key before the ':'; a key with the name null or ~ must be in quotes")
			continue
		}
		at := &trail{up: path, key: key.Value}
		size = capSize(size + s.resolveAlias(&value, at))
		if line, twice := lines[key.Value]; twice {
			s.reportProblem(key, at, "is set twice, first on line %d; keep one of them", line)
			continue
		}
		lines[key.Value] = key.Line
		written = append(written, key, value)
	}
	n.Content = written
	for _, from := range merges {
		s.mergeEntries(n, from, lines, path)
	}
	return size
}

// mergeEntries adds the entries of a mapping, or of a list of mappings, that n does not have itself.
func (s *simplifier) mergeEntries(n, from *yaml.Node, lines map[string]int, path *trail) {
	switch from.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(from.Content); i += 2 {
			if s.merged++; s.merged > maxAliased {
				return
			}
			key := from.Content[i]
			if _, has := lines[key.Value]; has {
				continue
			}
			lines[key.Value] = key.Line
			n.Content = append(n.Content, key, from.Content[i+1])
		}
	case yaml.SequenceNode:
		for _, each := range from.Content {
			if each.Kind != yaml.MappingNode {
				s.reportProblem(each, path, "<< takes a mapping or a list of mappings")
				continue
			}
			s.mergeEntries(n, each, lines, path)
		}
	default:
		s.reportProblem(from, path, "<< takes a mapping or a list of mappings")
	}
}

// checkTag refuses types that JSON, and so the API server, does not have.
func (s *simplifier) checkTag(n *yaml.Node, path *trail) {
	if tag := n.ShortTag(); !strings.HasPrefix(tag, "!!") || tag == "!!binary" {
		s.reportProblem(n, path, "croft does not support the YAML tag %s; leave it out", tag)
	}
}

// Decode converts a simplified node to the value that encoding/json would decode.
func Decode(n *yaml.Node) any {
	switch n.Kind {
	case yaml.MappingNode:
		m := make(map[string]any, len(n.Content)/2)
		for i := 0; i+1 < len(n.Content); i += 2 {
			m[n.Content[i].Value] = Decode(n.Content[i+1])
		}
		return m
	case yaml.SequenceNode:
		list := make([]any, len(n.Content))
		for i, item := range n.Content {
			list[i] = Decode(item)
		}
		return list
	default:
		return decodeScalar(n)
	}
}

// decodeScalar returns the value of a scalar. A value without a JSON type, such as a date, becomes
// the text as written.
func decodeScalar(n *yaml.Node) any {
	var v any
	if err := n.Decode(&v); err != nil {
		return n.Value
	}
	switch v := v.(type) {
	case nil, bool, int64, string:
		return v
	case int:
		return int64(v)
	case float64:
		if math.IsInf(v, 0) || math.IsNaN(v) {
			return n.Value
		}
		return v
	default:
		return n.Value
	}
}

// JoinPath appends a key to a path. A key with dots is quoted.
func JoinPath(path, key string) string {
	switch {
	case path == "":
		return key
	case strings.ContainsAny(key, ". /[]"):
		return fmt.Sprintf("%s[%q]", path, key)
	default:
		return path + "." + key
	}
}
