// Command conditionsdoc writes the generated part of docs/reference/conditions.md: every condition and
// every reason, from the comments of their constants in api/v1alpha1. It reads the document
// from the first argument and writes it to the second. `make generate` calls it.
package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/hack/internal/document"
	"croft.dev/croft/internal/operate/controller/status"
)

// source is relative to the repository's root, where `make generate` runs.
const source = "api/v1alpha1/conditions.go"

func main() { document.Main(generate) }

func generate() (string, error) {
	file, err := parser.ParseFile(token.NewFileSet(), source, nil, parser.ParseComments)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString("\n## Conditions\n\n| condition | meaning |\n|---|---|\n")
	if err := writeRows(&b, file, "Condition", func(string) string { return "" }); err != nil {
		return "", err
	}
	b.WriteString("\n## Reasons\n\nThe last column has the condition that accompanies the reason while `Ready` is not `True`.\n")
	b.WriteString("\n| reason | meaning | with |\n|---|---|---|\n")
	if err := writeRows(&b, file, "Reason", formatProgress); err != nil {
		return "", err
	}
	return b.String(), nil
}

// formatProgress returns the last column of a reason's row.
func formatProgress(reason string) string {
	switch condition := status.Progress[reason]; {
	case reason == v1alpha1.ReasonApplyFailed || reason == v1alpha1.ReasonDeleting:
		// The error decides: outcome.NeedsPerson.
		return " `" + v1alpha1.ConditionReconciling + "`, or `" + v1alpha1.ConditionStalled + "` if a person must act |"
	case condition == "":
		return "  |"
	default:
		return " `" + condition + "` |"
	}
}

// writeRows writes a row for each constant whose name has the prefix. more returns the further
// columns. A constant without a comment is an error.
func writeRows(b *strings.Builder, file *ast.File, prefix string, more func(value string) string) error {
	for _, declaration := range file.Decls {
		group, ok := declaration.(*ast.GenDecl)
		if !ok || group.Tok != token.CONST {
			continue
		}
		for _, spec := range group.Specs {
			constant, ok := spec.(*ast.ValueSpec)
			if !ok || !strings.HasPrefix(constant.Names[0].Name, prefix) || len(constant.Values) == 0 {
				continue
			}
			name := constant.Names[0].Name
			literal, ok := constant.Values[0].(*ast.BasicLit)
			if !ok {
				continue
			}
			value, err := strconv.Unquote(literal.Value)
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			comment := strings.Join(strings.Fields(constant.Doc.Text()), " ")
			if comment == "" {
				return fmt.Errorf("%s: %s has no comment: describe its meaning", source, name)
			}
			fmt.Fprintf(b, "| `%s` | %s |%s\n", value, formatSentence(strings.TrimPrefix(comment, name)), more(value))
		}
	}
	return nil
}

// formatSentence returns the rest of a comment that begins with the constant's name.
func formatSentence(comment string) string {
	comment = strings.TrimPrefix(strings.TrimSpace(comment), ":")
	comment = strings.TrimPrefix(strings.TrimSpace(comment), "says that ")
	if comment == "" {
		return comment
	}
	return strings.ReplaceAll(strings.ToUpper(comment[:1])+comment[1:], "|", `\|`)
}
