package manifest

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"croft.dev/croft/internal/declare/wording"
)

// explainError rewords the API server's error about a value, so that the author learns the valid
// values. It uses only the type of the error; the rest comes from the schema and the value.
func (c *compiledSchema) explainError(e *field.Error, obj map[string]any) string {
	schema, _ := c.findDeepestSchema(e.Field)
	at := place{c, obj, normalizePath(e.Field)}
	v, _, key := followPath(obj, at.path)
	bounds := schema.ValueValidation
	if bounds == nil {
		bounds = &structural.ValueValidation{}
	}
	switch e.Type {
	case field.ErrorTypeRequired:
		return "is required, but missing"
	case field.ErrorTypeTypeInvalid:
		return explainWrongType(at, schema, key, v)
	case field.ErrorTypeNotSupported:
		return explainUnsupported(v, bounds.Enum)
	case field.ErrorTypeTooLong:
		return fmt.Sprintf("has %d characters; write at most %d", wording.Length(v), ptr.Deref(bounds.MaxLength, 0))
	case field.ErrorTypeTooMany:
		return explainTooMany(v, bounds)
	case field.ErrorTypeDuplicate:
		return "is twice in the list; leave out one " + wording.Text(e.BadValue)
	default:
		return explainOutOfBounds(at, schema, bounds, key, v)
	}
}

// explainRule returns the rule's own message, which is written for users. A message that begins
// with "must" only concerns the value, and is appended to it.
func (c *compiledSchema) explainRule(e *field.Error) string {
	schema, _ := c.findDeepestSchema(e.Field)
	for _, rule := range schema.XValidations {
		if rule.Message != e.Detail {
			continue
		}
		if value, ok := e.BadValue.(string); ok && strings.HasPrefix(e.Detail, "must ") {
			return fmt.Sprintf("%q %s", value, e.Detail)
		}
		return e.Detail
	}
	return "is too large or too complex to be checked; write it in a simpler way"
}

// explainWrongType names the required type and, if possible, the accepted notation of the same value.
func explainWrongType(at place, schema *structural.Structural, key string, v any) string {
	switch {
	case isPort(schema):
		return "must be a number or text, not " + wording.Describe(v)
	case schema.XIntOrString:
		return explainInvalidQuantity(key, v)
	case schema.Type == "object":
		return fmt.Sprintf("must be a mapping, such as {key: value}, not %s", wording.Describe(v))
	case schema.Type == "array":
		return explainNoList(at, schema.Items, v)
	case schema.Type == "boolean":
		if meant, ok := truth[strings.ToLower(wording.Text(v))]; ok {
			return fmt.Sprintf("must be true or false; write %t, not %s", meant, wording.Describe(v))
		}
		return fmt.Sprintf("must be true or false, not %s", wording.Describe(v))
	case schema.Type == "integer":
		if n, err := strconv.ParseInt(wording.Text(v), 10, 64); err == nil && at.acceptsValue(n) {
			return fmt.Sprintf("must be a whole number; write %d without quotes", n)
		}
		return fmt.Sprintf("must be a whole number, not %s", wording.Describe(v))
	}
	if schema.ValueValidation != nil && schema.ValueValidation.Format == "date-time" {
		return fmt.Sprintf("must be a time, such as 2026-12-01T00:00:00Z, not %s", wording.Describe(v))
	}
	if wording.IsScalar(v) && at.acceptsValue(wording.Text(v)) {
		return fmt.Sprintf("must be text; put it in quotes: %q", wording.Text(v))
	}
	if hint := describeForm(schema); hint != "" {
		return fmt.Sprintf("%s is not allowed; write %s", wording.Describe(v), hint)
	}
	return fmt.Sprintf("must be text, not %s", wording.Describe(v))
}

// explainNoList suggests a list of the one value that is there, or gives an example.
func explainNoList(at place, items *structural.Structural, v any) string {
	for _, item := range []any{v, wording.Text(v)} {
		if wording.IsScalar(v) && v != "" && at.acceptsValue([]any{item}) && !isPort(items) {
			return fmt.Sprintf("must be a list; write [%s]", formatListItem(item))
		}
	}
	return fmt.Sprintf("must be a list, such as %s, not %s", formatExample(items), wording.Describe(v))
}

// isPort reports whether a schema is a number or text without the pattern of a quantity. Only
// ports are, and package estate checks their values.
func isPort(schema *structural.Structural) bool {
	return schema != nil && schema.XIntOrString && (schema.ValueValidation == nil || schema.ValueValidation.Pattern == "")
}

// truth maps words to the booleans that YAML 1.1 takes them for.
var truth = map[string]bool{
	"true": true, "yes": true, "y": true, "on": true, "1": true,
	"false": false, "no": false, "n": false, "off": false, "0": false,
}

// formatListItem formats a value for a list: text that YAML would parse as another type is quoted.
func formatListItem(v any) string {
	s, isText := v.(string)
	if !isText {
		return wording.Text(v)
	}
	var read any
	if err := yaml.Unmarshal([]byte("["+s+"]"), &read); err == nil && reflect.DeepEqual(read, []any{s}) {
		return s
	}
	return strconv.Quote(s)
}

// formatExample returns an example of a list of such items.
func formatExample(items *structural.Structural) string {
	switch {
	case isPort(items):
		return "[443, 8000-8010]"
	case items == nil || items.Type != "object":
		return "[a, b]"
	}
	fields := listFields(items)
	if items.ValueValidation != nil && len(items.ValueValidation.Required) > 0 {
		fields = items.ValueValidation.Required
	}
	return "[{" + strings.Join(fields[:min(1, len(fields))], "") + ": …}]"
}

// describeForm describes the required form of a text, as the object of a sentence.
func describeForm(schema *structural.Structural) string {
	for _, rule := range schema.XValidations {
		if what, ok := strings.CutPrefix(rule.Message, "must be "); ok {
			return what
		}
	}
	if schema.ValueValidation != nil && len(schema.ValueValidation.Enum) > 0 {
		return wording.Enumerate(listAllowed(schema.ValueValidation.Enum), "or")
	}
	return ""
}

func explainUnsupported(v any, enum []structural.JSON) string {
	known := listAllowed(enum)
	if like, ok := wording.Nearest(wording.Text(v), known); ok {
		return fmt.Sprintf("%q is not one of %s; did you mean %s?", wording.Text(v), wording.Enumerate(known, "and"), like)
	}
	return fmt.Sprintf("%q is not allowed; write %s", wording.Text(v), wording.Enumerate(known, "or"))
}

func listAllowed(enum []structural.JSON) []string {
	values := make([]string, len(enum))
	for i, e := range enum {
		values[i] = wording.Text(e.Object)
	}
	return values
}

func explainTooMany(v any, bounds *structural.ValueValidation) string {
	switch v := v.(type) {
	case []any:
		return fmt.Sprintf("has %d entries; write at most %d", len(v), ptr.Deref(bounds.MaxItems, 0))
	case map[string]any:
		return fmt.Sprintf("has %d entries; write at most %d", len(v), ptr.Deref(bounds.MaxProperties, 0))
	default:
		return "has too many entries"
	}
}

func explainOutOfBounds(at place, schema *structural.Structural, bounds *structural.ValueValidation, key string, v any) string {
	switch {
	case schema.XIntOrString:
		return explainInvalidQuantity(key, v)
	case bounds.MinLength != nil || bounds.MinItems != nil || bounds.MinProperties != nil:
		if at.canBeRemoved() {
			return "must not be empty; leave it out, or set a value"
		}
		return "must not be empty; set a value"
	case bounds.Minimum != nil && bounds.Maximum != nil:
		return fmt.Sprintf("must be from %v to %v, not %s", *bounds.Minimum, *bounds.Maximum, wording.Text(v))
	case bounds.Minimum != nil:
		return fmt.Sprintf("must be at least %s, not %s", wording.Text(*bounds.Minimum), wording.Text(v))
	default:
		return fmt.Sprintf("%s is not allowed here", wording.Describe(v))
	}
}

// explainInvalidQuantity describes the notation of an amount of a resource.
func explainInvalidQuantity(resourceName string, v any) string {
	if number, ok := v.(float64); ok && number < 1e6 {
		if q, err := resource.ParseQuantity(wording.Text(number)); err == nil {
			if IsWhole(resourceName) && q.MilliValue()%1000 != 0 {
				return fmt.Sprintf("%s is counted in whole numbers; write %d, not %s", resourceName, max(q.Value(), 0), wording.Text(number))
			}
			return fmt.Sprintf("the number %s must be in quotes, or written %s", wording.Text(number), q.String())
		}
	}
	return fmt.Sprintf("%q is not a quantity; write one such as 500m, 2 or 4Gi", wording.Text(v))
}

// checkQuantities finds invalid quantities that the schema's pattern accepts, such as 1e1.5.
func checkQuantities(schema *structural.Structural, v any, path *field.Path) []issue {
	var issues []issue
	switch v := v.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if next, ok := schema.Properties[key]; ok {
				issues = append(issues, checkQuantities(&next, v[key], path.Child(key))...)
			} else if more := schema.AdditionalProperties; more != nil && more.Structural != nil {
				issues = append(issues, checkQuantities(more.Structural, v[key], path.Key(key))...)
			}
		}
	case string:
		if _, err := resource.ParseQuantity(v); schema.XIntOrString && err != nil {
			issues = append(issues, issue{path.String(), explainInvalidQuantity("", v)})
		}
	}
	return issues
}

// explainUnknownField names the most similar known field, or all of them.
func explainUnknownField(name string, known []string) string {
	if like, ok := wording.Nearest(name, known); ok {
		return fmt.Sprintf("there is no such field; did you mean %s?", like)
	}
	if len(known) == 0 {
		return "there is no such field; nothing can be set here"
	}
	return "there is no such field; the fields are " + wording.Enumerate(known, "and")
}

func listFields(schema *structural.Structural) []string {
	return slices.Sorted(maps.Keys(schema.Properties))
}
