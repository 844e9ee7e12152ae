package source

import (
	"fmt"
	"strings"

	"croft.dev/croft/internal/declare/document"
)

// Object is an object of the input, or a values file, with the outcome of each of its fields.
type Object struct {
	// File is the name of the input file, or "cluster".
	File string
	// Document is the number of the document in the file, from 1, or 0 for an object from a
	// cluster.
	Document int

	APIVersion, Kind, Namespace, Name string
	Content                           map[string]any

	// Skip means that another object of this name is used, or that a reader has read all of the object.
	Skip bool
	// line returns the line of a field. It is nil for an object from a cluster.
	line func(path ...string) int
	// entries are the outcomes of its fields, by path.
	entries map[string]*entry
	// unset are the outcomes of unset fields.
	unset []*entry
}

// KindValues is the kind of a document that is not an object: the values file of a chart of
// tenants and pools.
const KindValues = "Values"

// Group returns the API group, without its version.
func (o *Object) Group() string {
	group, _, found := strings.Cut(o.APIVersion, "/")
	if !found {
		return ""
	}
	return group
}

// Version returns the version of the API group.
func (o *Object) Version() string {
	return o.APIVersion[strings.LastIndexByte(o.APIVersion, '/')+1:]
}

// ID returns the object's name for messages.
func (o *Object) ID() string {
	switch {
	case o.Kind == KindValues:
		return "values"
	case o.Namespace != "":
		return o.Kind + "/" + o.Namespace + "/" + o.Name
	default:
		return o.Kind + "/" + o.Name
	}
}

// Place returns the file and the first line of the object.
func (o *Object) Place() string {
	if o.line == nil {
		return o.ID() + " in the cluster"
	}
	return fmt.Sprintf("%s:%d", o.File, o.line())
}

// IsAccounted reports whether any of its fields has an outcome.
func (o *Object) IsAccounted() bool { return len(o.entries) > 0 }

// Root returns the object as a field.
func (o *Object) Root() Field { return Field{object: o, value: o.Content, found: true} }

// At returns the field at a path from the object's root.
func (o *Object) At(keys ...string) Field { return o.Root().At(keys...) }

// Problem returns a problem of a field, with its location in the input.
func (o *Object) Problem(path []string, format string, args ...any) document.Problem {
	p := document.Problem{File: o.File, Path: o.ID(), Message: fmt.Sprintf(format, args...)}
	if len(path) > 0 {
		p.Path += ": " + FieldPath(path)
	}
	if o.line != nil {
		p.Line = o.line(path...)
	}
	return p
}

// Parse parses the documents of one file. It returns a problem for each invalid document, and
// all valid objects.
func Parse(file string, data []byte) ([]*Object, document.Problems) {
	documents, problems := document.Read(file, data)
	var all []*Object
	for i := range documents {
		d := &documents[i]
		found, wrong := parseDocument(file, i+1, d.Content, d.FindLine)
		all = append(all, found...)
		problems = append(problems, wrong...)
	}
	if len(documents) == 0 && len(problems) == 0 {
		problems = append(problems, document.Problem{File: file, Message: "the file is empty; omit it, or name the right one"})
	}
	return all, problems
}

// parseDocument returns the object of one document, or the objects of a List.
func parseDocument(file string, number int, content map[string]any, line func(...string) int) ([]*Object, document.Problems) {
	o := NewObject(content)
	o.File, o.Document, o.line = file, number, line
	if items, ok := content["items"].([]any); ok && strings.HasSuffix(o.Kind, "List") {
		return splitList(o, items)
	}
	switch {
	case o.Kind == "" && o.APIVersion == "" && isValues(content):
		o.Kind = KindValues
	case o.Kind == "" && o.APIVersion == "" && isCompact(content):
		return nil, document.Problems{{File: file, Line: line(), Message: "this is already a croft.yaml: omit it, and add the result of the other files to it"}}
	case o.Kind == "" || o.APIVersion == "":
		return nil, document.Problems{{File: file, Line: line(), Message: fmt.Sprintf(
			"document %d is neither an object, with apiVersion and kind, nor a values file with nodePools or tenants; omit it", number)}}
	}
	return []*Object{o}, nil
}

// NewObject returns an object of a cluster, without outcomes.
func NewObject(content map[string]any) *Object {
	o := &Object{File: "cluster", Content: content, entries: map[string]*entry{}}
	o.APIVersion, _ = content["apiVersion"].(string)
	o.Kind, _ = content["kind"].(string)
	metadata, _ := content["metadata"].(map[string]any)
	o.Name, _ = metadata["name"].(string)
	o.Namespace, _ = metadata["namespace"].(string)
	return o
}

func splitList(list *Object, items []any) ([]*Object, document.Problems) {
	var all []*Object
	var problems document.Problems
	for i, item := range items {
		content, ok := item.(map[string]any)
		if !ok {
			problems = append(problems, list.Problem([]string{"items", fmt.Sprint(i)}, "is not an object; omit it"))
			continue
		}
		// A typed list omits the kind of its items, which follows from its own kind.
		if _, ok := content["kind"]; !ok && list.Kind != "List" {
			content["kind"], content["apiVersion"] = strings.TrimSuffix(list.Kind, "List"), list.APIVersion
		}
		found, wrong := parseDocument(list.File, list.Document, content, func(path ...string) int {
			return list.line(append([]string{"items", fmt.Sprint(i)}, path...)...)
		})
		all = append(all, found...)
		problems = append(problems, wrong...)
	}
	return all, problems
}

func isValues(content map[string]any) bool {
	_, pools := content["nodePools"]
	_, global := content["global"]
	tenants, _ := content["tenants"].(map[string]any)
	_, croft := content["platform"]
	return pools || global || len(tenants) > 0 && !croft && !isCompact(content)
}

func isCompact(content map[string]any) bool {
	_, platform := content["platform"]
	_, pools := content["pools"]
	return platform || pools
}
