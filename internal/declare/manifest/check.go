package manifest

import (
	"context"
	"slices"

	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
)

// issue is an error in a field of a single object.
type issue struct{ field, message string }

// checkObject defaults an object and validates it against its schema like the API server on create,
// but reports all errors at once, after the given ones. It leaves declared unchanged.
func checkObject(kind string, declared map[string]any, issues []issue) (map[string]any, []issue, error) {
	all, err := schemas()
	if err != nil {
		return nil, nil, err
	}
	schema := all[kind]
	obj := runtime.DeepCopyJSON(declared)
	wrong := make([]string, len(issues))
	for i := range issues {
		wrong[i] = normalizePath(issues[i].field)
	}
	issues = append(issues, schema.checkName(obj)...)
	issues = append(issues, schema.removeUnknownFields(obj)...)
	defaulting.PruneNonNullableNullsWithoutDefaults(obj, schema.structure)
	defaulting.Default(obj, schema.structure)
	for _, e := range schema.checkValues(obj) {
		issues = append(issues, issue{e.Field, schema.explainError(e, obj)})
		if e.Type != field.ErrorTypeNotSupported {
			wrong = append(wrong, normalizePath(e.Field))
		}
	}
	issues = append(issues, checkQuantities(schema.structure, obj, nil)...)
	for _, e := range schema.checkRules(obj, wrong) {
		issues = append(issues, issue{e.Field, schema.explainRule(e)})
	}
	return obj, removeDuplicates(issues), nil
}

// checkName checks the API server's rules on object names. The schemas' rules depend on the name,
// and their messages mention both.
func (c *compiledSchema) checkName(obj map[string]any) []issue {
	name, found, err := unstructured.NestedString(obj, "metadata", "name")
	if !found || err != nil || len(c.structure.XValidations) == 0 || len(apivalidation.NameIsDNSSubdomain(name, false)) == 0 {
		return nil
	}
	return []issue{{rootPath, c.structure.XValidations[0].Message}}
}

// removeUnknownFields removes and reports unknown fields, which the API server would drop silently.
func (c *compiledSchema) removeUnknownFields(obj map[string]any) []issue {
	var issues []issue
	for _, path := range pruning.PruneWithOptions(obj, c.structure, true, structural.UnknownFieldPathOptions{TrackUnknownFieldPaths: true}) {
		around, name := c.findDeepestSchema(path)
		if around.Type == "object" { // otherwise the mapping itself is invalid
			issues = append(issues, issue{path, explainUnknownField(name, listFields(around))})
		}
	}
	return issues
}

// checkValues checks types and bounds.
func (c *compiledSchema) checkValues(obj map[string]any) field.ErrorList {
	var errs field.ErrorList
	for _, e := range validation.ValidateCustomResource(nil, obj, c.openAPI) {
		// An error of the whole object only repeats an error of a field: the object is a
		// mapping, so it is not invalid itself.
		if e.Field != rootPath {
			errs = append(errs, e)
		}
	}
	return append(errs, listtype.ValidateListSetsAndMaps(nil, c.structure, obj)...)
}

// checkRules evaluates the rules. Rules can only be evaluated with values of the right type and
// size, so wrong values are removed first. Rules on their parents would then find them missing,
// so these are not reported.
func (c *compiledSchema) checkRules(obj map[string]any, wrong []string) field.ErrorList {
	if len(wrong) > 0 {
		obj = runtime.DeepCopyJSON(obj)
		for _, path := range wrong {
			if _, in, key := followPath(obj, path); in != nil {
				delete(in, key)
			}
		}
	}
	errs, _ := c.rules.Validate(context.Background(), nil, c.structure, obj, nil, celconfig.RuntimeCELCostBudget)
	return slices.DeleteFunc(errs, func(e *field.Error) bool {
		around := normalizePath(e.Field)
		return slices.ContainsFunc(wrong, func(path string) bool { return around == rootPath || hasPathPrefix(path, around) })
	})
}

// rootPath is the path of the object itself in the validators' errors.
const rootPath = "<nil>"

// removeDuplicates keeps the first issue of each field: a value of the wrong type also violates every
// other constraint on it. The object as a whole may have several issues.
func removeDuplicates(issues []issue) []issue {
	seen := map[issue]bool{}
	var kept []issue
	for _, i := range issues {
		key := issue{field: normalizePath(i.field)}
		if i.field == rootPath {
			i.field = ""
			key = i
		}
		if !seen[key] {
			seen[key] = true
			kept = append(kept, i)
		}
	}
	return kept
}
