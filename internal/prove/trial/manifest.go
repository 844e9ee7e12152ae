package trial

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	"croft.dev/croft/internal/declare/document"
)

// Manifest is one object in a file.
type Manifest struct {
	// File and Line are the position at which the object begins; lines count from 1.
	File   string
	Line   int
	Object *unstructured.Unstructured

	// from is the document with the object, and path the path in it: items and an index for an
	// object of a List.
	from *part
	path []string
}

// findLine returns the line of a field of the object, or of the nearest parent if the field is not
// written.
func (m Manifest) findLine(path ...string) int {
	if m.from == nil {
		return m.Line
	}
	return max(m.Line, m.from.findLine(append(m.path[:len(m.path):len(m.path)], path...)))
}

// ReadManifests parses a stream of objects in YAML or JSON, which may contain Lists. It skips documents
// that only contain comments. An error names file and line.
func ReadManifests(file string, data []byte) ([]Manifest, error) {
	var all []Manifest
	for _, d := range splitDocuments(data) {
		content, err := d.decodeContent()
		if err != nil {
			return nil, fmt.Errorf("%s:%w", file, err)
		}
		if content == nil {
			continue
		}
		if all, err = addObject(all, Manifest{File: file, Line: d.line, Object: &unstructured.Unstructured{Object: content}, from: d}); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// addObject adds an object, or the objects of a List.
func addObject(all []Manifest, m Manifest) ([]Manifest, error) {
	wrong := func(line int, format string, args ...any) ([]Manifest, error) {
		return nil, fmt.Errorf("%s:%d: %s", m.File, line, fmt.Sprintf(format, args...))
	}
	o := m.Object
	if o.GetAPIVersion() == "" || o.GetKind() == "" {
		return wrong(m.Line, "this is not a Kubernetes object: it has no apiVersion or no kind")
	}
	if !o.IsList() {
		if o.GetName() == "" && o.GetGenerateName() == "" && !isNameless(o.GetKind()) {
			return wrong(m.findLine("metadata", "name"), "%s has no metadata.name, or its name is not a string", o.GetKind())
		}
		if field, err := checkFieldTypes(o); err != nil {
			return wrong(m.findLine(field...), "%s/%s: %v", o.GetKind(), o.GetName(), err)
		}
		return append(all, m), nil
	}
	items, _ := o.Object["items"].([]any)
	for i, item := range items {
		path := slices.Concat(m.path, []string{"items", strconv.Itoa(i)})
		content, ok := item.(map[string]any)
		if !ok {
			return wrong(m.from.findLine(path), "items[%d] of the %s is not an object", i, o.GetKind())
		}
		inner := &unstructured.Unstructured{Object: content}
		if kind, typed := strings.CutSuffix(o.GetKind(), "List"); typed && kind != "" && inner.GetKind() == "" {
			inner.SetAPIVersion(o.GetAPIVersion())
			inner.SetKind(kind)
		}
		var err error
		if all, err = addObject(all, Manifest{File: m.File, Line: m.from.findLine(path), Object: inner, from: m.from, path: path}); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// isNameless reports whether objects of a kind, such as reviews, have no name.
func isNameless(kind string) bool {
	return strings.HasSuffix(kind, "Review") || kind == "TokenRequest"
}

// checkFieldTypes returns the first field of a built-in kind that has another type than the API server
// accepts.
func checkFieldTypes(o *unstructured.Unstructured) (field []string, wrong error) {
	typed, err := scheme.Scheme.New(o.GroupVersionKind())
	if err != nil {
		return nil, nil //nolint:nilerr // a kind of an add-on
	}
	if wrong = runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, typed); wrong == nil {
		return nil, nil
	}
	// The converter's error does not name the field.
	text, err := json.Marshal(o.Object)
	if err != nil {
		return nil, err
	}
	var mistyped *json.UnmarshalTypeError
	if errors.As(json.Unmarshal(text, typed), &mistyped) && mistyped.Field != "" {
		return strings.Split(mistyped.Field, "."), fmt.Errorf("%s: the type is %s, and must be %s", mistyped.Field, mistyped.Value, mistyped.Type)
	}
	return nil, wrong
}

// part is a piece of a file with one object or one List.
type part struct {
	text []byte
	// linesAbove is the number of lines before the text in the file, and line the line of the
	// document's first field.
	linesAbove, line int

	once  sync.Once
	nodes *document.Document
}

// splitDocuments returns the documents of a stream, separated as kubectl separates them.
func splitDocuments(data []byte) []*part {
	var all []*part
	current := &part{}
	number := 0
	for line := range bytes.Lines(data) {
		if rest, ok := bytes.CutPrefix(line, []byte("---")); ok && (len(rest) == 0 || bytes.ContainsAny(rest[:1], " \t\r\n")) {
			all = append(all, current.splitJSON()...)
			current = &part{linesAbove: number}
			line = append([]byte("   "), rest...) // the document may begin on this line
		}
		number++
		current.text = append(current.text, line...)
	}
	return append(all, current.splitJSON()...)
}

// splitJSON separates consecutive JSON objects, and determines the first line of each.
func (p *part) splitJSON() []*part {
	p.line = p.linesAbove + 1
	for line := range bytes.Lines(p.text) {
		if trimmed := bytes.TrimSpace(line); len(trimmed) > 0 && trimmed[0] != '#' && trimmed[0] != '%' {
			break
		}
		p.line++
	}
	if !bytes.HasPrefix(bytes.TrimSpace(p.text), []byte("{")) {
		return []*part{p}
	}
	var all []*part
	decoder := json.NewDecoder(bytes.NewReader(p.text))
	for decoder.More() {
		var object json.RawMessage
		if decoder.Decode(&object) != nil {
			return []*part{p} // YAML that begins with a brace, or invalid
		}
		start := int(decoder.InputOffset()) - len(object)
		above := p.linesAbove + bytes.Count(p.text[:start], []byte("\n"))
		all = append(all, &part{text: object, linesAbove: above, line: above + 1})
	}
	return all
}

// parserLine matches the beginning of the YAML parser's errors.
var parserLine = regexp.MustCompile(`^(?:error converting YAML to JSON: )?yaml: (?:line (\d+): )?`)

// decodeContent returns the document as kubectl decodes it, with whole numbers as int64, or nil if it
// is empty. An error begins with the line.
func (p *part) decodeContent() (map[string]any, error) {
	text, err := yaml.YAMLToJSON(p.text)
	if err != nil {
		line, message := p.line, err.Error()
		if match := parserLine.FindStringSubmatch(message); match != nil {
			message = message[len(match[0]):]
			if n, err := strconv.Atoi(match[1]); err == nil {
				line = p.linesAbove + n
			}
		}
		if before, _, ok := bytes.Cut(p.text, []byte("{{")); ok {
			if line == p.line {
				line = p.linesAbove + 1 + bytes.Count(before, []byte("\n"))
			}
			message += "; render templates first, such as with helm template"
		}
		return nil, fmt.Errorf("%d: this is not YAML: %s", line, message)
	}
	var content any
	if err := utiljson.Unmarshal(text, &content); err != nil {
		return nil, fmt.Errorf("%d: %w", p.line, err)
	}
	switch content := content.(type) {
	case nil:
		return nil, nil
	case map[string]any:
		if len(content) == 0 {
			return nil, nil
		}
		return content, nil
	case []any:
		return nil, fmt.Errorf("%d: this is a list, and not a Kubernetes object: write a document for each object, or kind: List", p.line)
	default:
		return nil, fmt.Errorf("%d: this is not a Kubernetes object: write apiVersion, kind and metadata", p.line)
	}
}

// findLine returns the line of a field. It parses the document again on the first call, because
// most documents never need a line.
func (p *part) findLine(path []string) int {
	p.once.Do(func() {
		if found, _ := document.Read("", p.text); len(found) > 0 {
			p.nodes = &found[0]
		}
	})
	if p.nodes == nil {
		return p.line
	}
	return p.nodes.FindLine(path...) + p.linesAbove
}
