package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// prefix begins croft's own markers. controller-gen and crd-ref-docs ignore markers that they do
// not know.
const prefix = "+croft:"

// apiTypes are the structs of the API, by their names.
type apiTypes struct {
	files   *token.FileSet
	structs map[string]*ast.StructType
}

// parseTypes parses the types in the files of a directory whose names end in _types.go.
func parseTypes(directory string) (apiTypes, error) {
	all := apiTypes{token.NewFileSet(), map[string]*ast.StructType{}}
	paths, err := filepath.Glob(filepath.Join(directory, "*_types.go"))
	if err != nil {
		return all, err
	}
	for _, path := range paths {
		file, err := parser.ParseFile(all.files, path, nil, parser.ParseComments)
		if err != nil {
			return all, err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if spec, ok := n.(*ast.TypeSpec); ok {
				if fields, ok := spec.Type.(*ast.StructType); ok {
					all.structs[spec.Name.Name] = fields
				}
			}
			return true
		})
	}
	return all, nil
}

// decision is a marker of a field, and its text.
type decision struct {
	path, marker, text string
}

// listDecisions returns the decisions about all fields of a struct, in their order: one of the
// markers at each field, or at a field above it. path is the prefix of the fields' paths.
func (t apiTypes) listDecisions(of, path string, markers ...string) ([]decision, error) {
	structure, ok := t.structs[of]
	if !ok {
		return nil, fmt.Errorf("there is no struct %s", of)
	}
	var all []decision
	for _, field := range structure.Fields.List {
		name, below := path+jsonName(field), typeName(field.Type)
		found, err := findMarkers(field, markers)
		if err == nil && len(found) == 0 && t.hasFields(below) {
			if len(field.Names) > 0 { // otherwise it is embedded, and its fields have the same path
				name += "."
			}
			more, err := t.listDecisions(below, name, markers...)
			if err != nil {
				return nil, err
			}
			all = append(all, more...)
			continue
		}
		if err == nil && len(found) != 1 {
			err = fmt.Errorf("write one marker +%s=TEXT above it; it has %d", strings.Join(markers, "=TEXT or +"), len(found))
		}
		if err != nil {
			return nil, fmt.Errorf("%s: the field %s of %s: %w", t.files.Position(field.Pos()), name, of, err)
		}
		all = append(all, decision{name, found[0].marker, found[0].text})
	}
	return all, nil
}

// hasFields reports whether a type is a struct with fields of its own.
func (t apiTypes) hasFields(name string) bool {
	structure, ok := t.structs[name]
	return ok && len(structure.Fields.List) > 0
}

// knownMarkers are all names of croft's markers.
var knownMarkers = []string{"croft:tenants:shown", "croft:tenants:hidden", "croft:change", "croft:exception"}

// findMarkers returns the field's decisions by the given markers. A name that the generator does
// not know is an error, as is a marker without a text.
func findMarkers(field *ast.Field, markers []string) ([]decision, error) {
	if field.Doc == nil {
		return nil, nil
	}
	var found []decision
	for _, comment := range field.Doc.List {
		line := strings.TrimSpace(strings.TrimPrefix(comment.Text, "//"))
		if !strings.HasPrefix(line, prefix) {
			continue
		}
		name, text, _ := strings.Cut(strings.TrimPrefix(line, "+"), "=")
		switch {
		case !slices.Contains(knownMarkers, name):
			return nil, fmt.Errorf("there is no marker +%s; the markers are +%s", name, strings.Join(knownMarkers, ", +"))
		case text == "":
			return nil, fmt.Errorf("the marker +%s needs a text", name)
		case slices.Contains(markers, name):
			found = append(found, decision{marker: name, text: text})
		}
	}
	return found, nil
}

func jsonName(field *ast.Field) string {
	if field.Tag == nil {
		return ""
	}
	tag, err := strconv.Unquote(field.Tag.Value)
	if err != nil {
		return ""
	}
	name, _, _ := strings.Cut(reflect.StructTag(tag).Get("json"), ",")
	return name
}

// typeName returns the name of a type of the package, or of the type that a pointer points to.
// Lists, maps and types of other packages have no name.
func typeName(of ast.Expr) string {
	switch of := of.(type) {
	case *ast.Ident:
		return of.Name
	case *ast.StarExpr:
		return typeName(of.X)
	default:
		return ""
	}
}
