package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"go.yaml.in/yaml/v3"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/document"
	"croft.dev/croft/internal/declare/wording"
)

// Parse reads croft.yaml in its compact form, a stream of objects, or both in one stream of
// YAML or JSON documents. Every object is defaulted and checked alone, against the schema in
// its CustomResourceDefinition. Invalid objects are left out of the Declaration. name is the
// file's name in problems.
func Parse(name string, data []byte) (*Declaration, document.Problems) {
	return ParseWith(name, data, nil)
}

// ParseWith is like Parse, for a file that may refer to other files, which open reads.
func ParseWith(name string, data []byte, open Open) (*Declaration, document.Problems) {
	r := &reader{file: name, open: open, into: &Declaration{}}
	r.readStream(data)
	return r.into, r.problems.Sorted()
}

// reader collects the declared objects of one file.
type reader struct {
	file string
	// open is nil if no other files can be read.
	open     Open
	into     *Declaration
	problems document.Problems
}

// reportUnreadable reports an error because of which a part of the file, or all of it, cannot be
// read.
func (r *reader) reportUnreadable(line int, path, format string, args ...any) {
	r.into.partial = true
	r.problems = append(r.problems, document.Problem{File: r.file, Line: line, Path: path, Message: fmt.Sprintf(format, args...)})
}

func (r *reader) readStream(data []byte) {
	if message := document.CheckSize(data); message != "" {
		r.reportUnreadable(0, "", "%s", message)
		return
	}
	documents := 0
	for decoder := yaml.NewDecoder(bytes.NewReader(data)); ; {
		var doc yaml.Node
		err := decoder.Decode(&doc)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			line, message := document.ExplainSyntax(data, err)
			r.reportUnreadable(line, "", "%s", message)
			return
		}
		if r.readDocument(&doc) {
			documents++
		}
	}
	if documents == 0 {
		r.reportUnreadable(0, "", "the file is empty; write a platform, its pools and its tenants")
	}
}

// readDocument reads one document, and reports whether it has any content.
func (r *reader) readDocument(doc *yaml.Node) bool {
	if len(doc.Content) == 0 {
		return false
	}
	root := doc.Content[0]
	switch {
	case root.Kind == yaml.ScalarNode && root.ShortTag() == "!!null":
		return false
	case root.Kind != yaml.MappingNode:
		what := "a list"
		if root.Kind == yaml.ScalarNode {
			what = wording.Describe(document.Decode(root))
		}
		r.reportUnreadable(root.Line, "", "a document must be a mapping, such as \"platform: {...}\", not %s", what)
		return true
	}
	if found := document.Simplify(r.file, doc); len(found) > 0 {
		r.problems = append(r.problems, found...)
		r.into.partial = true
	}
	if len(doc.Content) == 0 {
		return true // refused as a whole
	}
	if findEntry(root, "kind") != nil || findEntry(root, "apiVersion") != nil {
		r.readResource(root)
	} else {
		r.readCompact(root)
	}
	return true
}

// readResource reads one object of a stream.
func (r *reader) readResource(root *yaml.Node) {
	declared, _ := document.Decode(root).(map[string]any)
	kind, version := declared["kind"], declared["apiVersion"]
	if version != v1alpha1.GroupVersion.String() || !isKind(kind) {
		r.reportUnreadable(root.Line, "", "croft reads %s of %s, not %s of %s",
			wording.Enumerate(kinds, "and"), v1alpha1.GroupVersion, wording.Text(kind), wording.Text(version))
		return
	}
	name, issues := cleanMetadata(declared)
	delete(declared, "status") // croft writes the status, users do not
	r.addObject(kind.(string), &origin{file: r.file, name: name, line: root.Line, node: root, declared: declared}, issues)
}

// addObject checks one object alone and adds it to the Declaration.
func (r *reader) addObject(kind string, from *origin, issues []issue) {
	checked, issues, err := checkObject(kind, from.declared, issues)
	if err != nil {
		r.reportUnreadable(from.line, from.path, "croft's own schema of %s is broken, please report it: %v", kind, err)
		return
	}
	if len(issues) == 0 {
		if err := r.into.appendObject(kind, checked, from); err != nil {
			issues = []issue{{message: "cannot be read: " + err.Error()}}
		} else {
			return
		}
	}
	r.into.recordRefused(ID{kind, from.name}, from)
	for _, i := range issues {
		p := document.Problem{Kind: kind, Name: from.name, Field: i.field, Message: i.message}
		from.locateProblem(&p)
		r.problems = append(r.problems, p)
	}
}

// findEntry returns the value of a key of a mapping, or nil.
func findEntry(mapping *yaml.Node, key string) *yaml.Node {
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == key {
			return mapping.Content[i+1]
		}
	}
	return nil
}
