package estate

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
)

// explain says what the API server would say of a value, but so that whoever
// wrote it knows what to write instead. Of the error only its type is used; the
// rest comes from the schema and the value.
func (c *compiled) explain(e *field.Error, obj map[string]any) string {
	schema, _ := c.deepest(e.Field)
	v, _, _ := follow(obj, plainPath(e.Field))
	bounds := schema.ValueValidation
	if bounds == nil {
		bounds = &structural.ValueValidation{}
	}
	switch e.Type {
	case field.ErrorTypeRequired:
		return "is missing, and must be set"
	case field.ErrorTypeTypeInvalid:
		return wrongType(schema, v)
	case field.ErrorTypeNotSupported:
		return notOneOf(v, bounds.Enum)
	case field.ErrorTypeTooLong:
		return fmt.Sprintf("has %d characters; write at most %d", length(v), ptr.Deref(bounds.MaxLength, 0))
	case field.ErrorTypeTooMany:
		return tooMany(v, bounds)
	case field.ErrorTypeDuplicate:
		return "stands twice in the list; leave out one " + text(e.BadValue)
	default:
		return outOfBounds(schema, bounds, v)
	}
}

// explainRule is the rule's own message, which is written for people. One that
// begins with "must" is about the value alone, and follows it.
func (c *compiled) explainRule(e *field.Error) string {
	schema, _ := c.deepest(e.Field)
	for _, rule := range schema.XValidations {
		if rule.Message != e.Detail {
			continue
		}
		if value, ok := e.BadValue.(string); ok && strings.HasPrefix(e.Detail, "must ") {
			return fmt.Sprintf("%q %s", value, e.Detail)
		}
		return e.Detail
	}
	return "is too large or too unusual to be checked; write it in a simpler way"
}

func wrongType(schema *structural.Structural, v any) string {
	switch {
	case schema.XIntOrString:
		return notAQuantity(v)
	case schema.Type == "object":
		return fmt.Sprintf("must be a mapping, such as {key: value}, not %s", describe(v))
	case schema.Type == "array":
		if isScalar(v) {
			return fmt.Sprintf("must be a list; write [%s]", text(v))
		}
		return fmt.Sprintf("must be a list, such as [a, b], not %s", describe(v))
	case schema.Type == "integer":
		return fmt.Sprintf("must be a whole number, not %s", describe(v))
	}
	if hint := hint(schema); hint != "" {
		return fmt.Sprintf("%s will not do; write %s", describe(v), hint)
	}
	if isScalar(v) {
		return fmt.Sprintf("must be text; put it in quotes: %q", text(v))
	}
	return fmt.Sprintf("must be text, not %s", describe(v))
}

// hint says what a text must look like, as the object of a sentence.
func hint(schema *structural.Structural) string {
	for _, rule := range schema.XValidations {
		if what, ok := strings.CutPrefix(rule.Message, "must be "); ok {
			return what
		}
	}
	if schema.ValueValidation != nil && len(schema.ValueValidation.Enum) > 0 {
		return enumerate(allowed(schema.ValueValidation.Enum), "or")
	}
	return ""
}

func notOneOf(v any, enum []structural.JSON) string {
	known := allowed(enum)
	if like, ok := nearest(text(v), known); ok {
		return fmt.Sprintf("%q is not one of %s; did you mean %s?", text(v), enumerate(known, "and"), like)
	}
	return fmt.Sprintf("%q will not do; write %s", text(v), enumerate(known, "or"))
}

func allowed(enum []structural.JSON) []string {
	values := make([]string, len(enum))
	for i, e := range enum {
		values[i] = text(e.Object)
	}
	return values
}

func tooMany(v any, bounds *structural.ValueValidation) string {
	switch v := v.(type) {
	case []any:
		return fmt.Sprintf("has %d entries; write at most %d", len(v), ptr.Deref(bounds.MaxItems, 0))
	case map[string]any:
		return fmt.Sprintf("has %d entries; write at most %d", len(v), ptr.Deref(bounds.MaxProperties, 0))
	default:
		return "has too many entries"
	}
}

func outOfBounds(schema *structural.Structural, bounds *structural.ValueValidation, v any) string {
	switch {
	case schema.XIntOrString:
		return notAQuantity(v)
	case bounds.MinLength != nil || bounds.MinItems != nil:
		return "must not be empty; leave it out, or write what you need"
	case bounds.Minimum != nil && bounds.Maximum != nil:
		return fmt.Sprintf("must be from %v to %v, not %s", *bounds.Minimum, *bounds.Maximum, text(v))
	default:
		return fmt.Sprintf("%s will not do here", describe(v))
	}
}

func notAQuantity(v any) string {
	if number, ok := v.(float64); ok && number < 1e6 {
		if q, err := resource.ParseQuantity(text(number)); err == nil {
			return fmt.Sprintf("the number %s must be in quotes, or written %s", text(number), q.String())
		}
	}
	return fmt.Sprintf("%q is not a quantity; write one such as 500m, 2 or 4Gi", text(v))
}

// quantities finds those that the schema's pattern takes for one, but that are
// none, such as 1e1.5.
func quantities(schema *structural.Structural, v any, path *field.Path) []issue {
	var issues []issue
	switch v := v.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if next, ok := schema.Properties[key]; ok {
				issues = append(issues, quantities(&next, v[key], path.Child(key))...)
			} else if more := schema.AdditionalProperties; more != nil && more.Structural != nil {
				issues = append(issues, quantities(more.Structural, v[key], path.Key(key))...)
			}
		}
	case string:
		if _, err := resource.ParseQuantity(v); schema.XIntOrString && err != nil {
			issues = append(issues, issue{path.String(), notAQuantity(v)})
		}
	}
	return issues
}

// unknownField names the known field that was most likely meant, or all of them.
func unknownField(name string, known []string) string {
	if like, ok := nearest(name, known); ok {
		return fmt.Sprintf("there is no such field; did you mean %s?", like)
	}
	if len(known) == 0 {
		return "there is no such field; nothing can be set here"
	}
	return "there is no such field; there are " + enumerate(known, "and")
}

func fieldsOf(schema *structural.Structural) []string {
	return slices.Sorted(maps.Keys(schema.Properties))
}
