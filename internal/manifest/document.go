package manifest

import (
	"fmt"
	"math"
	"strings"

	"go.yaml.in/yaml/v3"
)

// maxAliased is the maximum number of values of a document after expanding its aliases. A few
// lines of aliases to aliases can expand to more values than fit into memory.
const maxAliased = 1_000_000

// simplify reduces the nodes of one document to mappings, sequences and scalars, so that later
// code need not support YAML's other features: aliases are replaced by their values, merge keys
// by their entries, and keys are unique. Errors are reported, and their nodes are left out.
func simplify(file string, doc *yaml.Node) Problems {
	s := simplifier{file: file, sizes: map[*yaml.Node]int{}}
	if size := s.visit(doc, nil); len(s.sizes) > 0 && max(size, s.merged) > maxAliased {
		s.report(doc, nil, "the aliases in this document stand for more than %d values; write out what you need", maxAliased)
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

func (s *simplifier) report(at *yaml.Node, path *trail, format string, args ...any) {
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
	return join(t.up.String(), t.key)
}

// visit simplifies a node and everything in it, and returns the number of its values.
func (s *simplifier) visit(n *yaml.Node, path *trail) int {
	if size, known := s.sizes[n]; known {
		return size
	}
	if n.Anchor != "" {
		s.sizes[n] = unfinished
	}
	size := 1
	switch n.Kind {
	case yaml.DocumentNode:
		size += s.replace(&n.Content[0], path)
	case yaml.SequenceNode:
		for i := range n.Content {
			size = atMost(size + s.replace(&n.Content[i], &trail{up: path, index: i}))
		}
	case yaml.MappingNode:
		size += s.entries(n, path)
	case yaml.ScalarNode:
		s.tag(n, path)
	case yaml.AliasNode: // replace has followed it to its target
	}
	if n.Anchor != "" {
		s.sizes[n] = size
	}
	return size
}

// replace simplifies a node, or replaces an alias by its target.
func (s *simplifier) replace(at **yaml.Node, path *trail) int {
	n := *at
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	size := s.visit(n, path)
	if size == unfinished {
		s.report(*at, path, "the alias *%s stands inside of what it stands for; write out what you need", (*at).Value)
		n, size = &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Line: (*at).Line}, 1
	}
	*at = n
	return size
}

// atMost keeps a size from overflowing. A size that is too large remains so.
func atMost(size int) int { return min(size, 2*maxAliased) }

// entries makes the keys of a mapping unique and expands its merge keys. It returns the number
// of values of the mapping.
func (s *simplifier) entries(n *yaml.Node, path *trail) int {
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
			s.report(key, path, "a key must be a plain word")
			continue
		case key.ShortTag() == "!!merge":
			size = atMost(size + s.replace(&value, path))
			merges = append(merges, value)
			continue
		case key.ShortTag() == "!!null":
			s.report(key, path, "there is no key before the ':'; one called null or ~ must be in quotes")
			continue
		}
		at := &trail{up: path, key: key.Value}
		size = atMost(size + s.replace(&value, at))
		if line, twice := lines[key.Value]; twice {
			s.report(key, at, "written twice, on line %d already; keep one of them", line)
			continue
		}
		lines[key.Value] = key.Line
		written = append(written, key, value)
	}
	n.Content = written
	for _, from := range merges {
		s.merge(n, from, lines, path)
	}
	return size
}

// merge adds the entries of a mapping, or of a list of mappings, that n does not have itself.
func (s *simplifier) merge(n, from *yaml.Node, lines map[string]int, path *trail) {
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
				s.report(each, path, "<< takes a mapping or a list of mappings")
				continue
			}
			s.merge(n, each, lines, path)
		}
	default:
		s.report(from, path, "<< takes a mapping or a list of mappings")
	}
}

// tag refuses types that JSON, and so the API server, does not have.
func (s *simplifier) tag(n *yaml.Node, path *trail) {
	if tag := n.ShortTag(); !strings.HasPrefix(tag, "!!") || tag == "!!binary" {
		s.report(n, path, "the tag %s means nothing here; leave it out", tag)
	}
}

// value converts a simplified node to the value that encoding/json would decode.
func value(n *yaml.Node) any {
	switch n.Kind {
	case yaml.MappingNode:
		m := make(map[string]any, len(n.Content)/2)
		for i := 0; i+1 < len(n.Content); i += 2 {
			m[n.Content[i].Value] = value(n.Content[i+1])
		}
		return m
	case yaml.SequenceNode:
		list := make([]any, len(n.Content))
		for i, item := range n.Content {
			list[i] = value(item)
		}
		return list
	default:
		return scalar(n)
	}
}

// scalar returns the value of a scalar. A value without a JSON type, such as a date, becomes
// the text as written.
func scalar(n *yaml.Node) any {
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
