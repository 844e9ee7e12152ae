// Package document reads files of YAML or JSON documents of any content, with the line of each
// field, and formats the problems that are found in them. Package manifest reads croft's own
// objects.
//
// It does no I/O: the callers read files.
package document

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// maxSize is the maximum size of a file. An estate of 5,000 tenants is about 1 MiB.
const maxSize = 10 << 20

// CheckSize returns the problem of a file that is too large, or "".
func CheckSize(data []byte) string {
	if len(data) <= maxSize {
		return ""
	}
	return fmt.Sprintf("the file has %.1f MiB, and croft reads no more than %d MiB; is this the right file?", float64(len(data))/(1<<20), maxSize>>20)
}

// yamlError matches the parser's errors.
var yamlError = regexp.MustCompile(`^yaml: (?:line (\d+): )?(.*)$`)

// ExplainSyntax returns the line and the message of an error of the YAML parser. The line is 0 if
// the error names none.
func ExplainSyntax(data []byte, err error) (line int, message string) {
	message = err.Error()
	if match := yamlError.FindStringSubmatch(message); match != nil {
		line, _ = strconv.Atoi(match[1])
		message = match[2]
	}
	if strings.Contains(message, "cannot start any token") && bytes.ContainsRune(data, '\t') {
		message += "; YAML is indented with spaces, never with tabs"
	}
	return line, "not YAML: " + message
}

// Document is one document of a file of any kind, for commands that read other tools' files.
type Document struct {
	// Content is the document as encoding/json would decode it.
	Content map[string]any
	// Start is the first line of the document.
	Start int

	root       *yaml.Node
	linesAbove int
}

// FindLine returns the line of a field, or of the nearest parent if the field is not written. The
// indexes of lists are steps of the path, like keys.
func (d *Document) FindLine(path ...string) int {
	line, at := d.root.Line, d.root
	for _, step := range path {
		next, from := findChild(at, step)
		if next == nil {
			break
		}
		line, at = from, next
	}
	return line + d.linesAbove
}

func findChild(n *yaml.Node, step string) (value *yaml.Node, line int) {
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i].Value == step {
				return n.Content[i+1], n.Content[i].Line
			}
		}
	case yaml.SequenceNode:
		if i, err := strconv.Atoi(step); err == nil && i >= 0 && i < len(n.Content) {
			return n.Content[i], n.Content[i].Line
		}
	default: // a scalar has no fields
	}
	return nil, 0
}

// Read reads a file of YAML or JSON documents of any content. An invalid document is a
// problem, and the others are returned nevertheless.
func Read(name string, data []byte) ([]Document, Problems) {
	if message := CheckSize(data); message != "" {
		return nil, Problems{{File: name, Message: message}}
	}
	var (
		all      []Document
		problems Problems
	)
	for _, part := range splitDocuments(data) {
		found, wrong := part.decodeDocuments(name)
		all = append(all, found...)
		problems = append(problems, wrong...)
	}
	return all, problems
}

// part is a piece of a file, with the number of lines above it.
type part struct {
	text       []byte
	linesAbove int
}

// splitDocuments divides a file where its documents begin, so that an invalid document does not affect
// the others. YAML forbids such a line within a document.
func splitDocuments(data []byte) []part {
	var parts []part
	start, above, line := 0, 0, 0
	for at := 0; at < len(data); {
		end := bytes.IndexByte(data[at:], '\n') + 1
		if end == 0 {
			end = len(data) - at
		}
		if text := data[at : at+end]; at > start && beginsDocument(text) {
			parts = append(parts, part{data[start:at], above})
			start, above = at, line
		}
		at += end
		line++
	}
	return append(parts, part{data[start:], above})
}

func beginsDocument(line []byte) bool {
	rest, ok := bytes.CutPrefix(line, []byte("---"))
	return ok && (len(rest) == 0 || bytes.IndexByte([]byte(" \t\r\n"), rest[0]) >= 0)
}

// decodeDocuments returns the documents of one part: more than one only if JSON documents follow one
// another.
func (p part) decodeDocuments(name string) ([]Document, Problems) {
	var (
		all      []Document
		problems Problems
	)
	for decoder := yaml.NewDecoder(bytes.NewReader(p.text)); ; {
		var doc yaml.Node
		err := decoder.Decode(&doc)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			line, message := ExplainSyntax(p.text, err)
			problems = append(problems, Problem{File: name, Line: line, Message: message})
			break
		}
		if len(doc.Content) == 0 || doc.Content[0].Kind == yaml.ScalarNode && doc.Content[0].ShortTag() == "!!null" {
			continue
		}
		if doc.Content[0].Kind != yaml.MappingNode {
			problems = append(problems, Problem{File: name, Line: doc.Content[0].Line, Message: "a document must be a mapping, such as an object with its apiVersion and kind"})
			continue
		}
		problems = append(problems, Simplify(name, &doc)...)
		if len(doc.Content) == 0 {
			continue // refused as a whole
		}
		root := doc.Content[0]
		content, _ := Decode(root).(map[string]any)
		all = append(all, Document{Content: content, Start: root.Line + p.linesAbove, root: root, linesAbove: p.linesAbove})
	}
	for i := range problems {
		if problems[i].Line > 0 {
			problems[i].Line += p.linesAbove
		}
	}
	return all, problems
}
