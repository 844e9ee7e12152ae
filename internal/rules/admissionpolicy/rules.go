package admissionpolicy

import (
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
)

// Expressions of rules use params.spec.X for the field X of a tenant's TenantRules. The
// rendered expressions read the value from annotations of the namespace, which the API server
// provides as namespaceObject. A parameter of the kind TenantRules would be easier to read.
// But a restarted API server looks up the kind of a policy's parameter once, and then not
// again for half a minute. If the lookup comes before the CustomResourceDefinition is served,
// every request that the policy matches is refused for that time, even deletion by
// administrators (kubernetes/kubernetes#124237).

// ruleRead matches the fields of a tenant's rules that an expression reads.
var ruleRead = regexp.MustCompile(`params\.spec\.([A-Za-z]+)`)

// writtenRead matches the lists of a tenant's rules that an expression reads in their
// annotation form: params.written.X is the value of the annotation. If a list has a single
// entry, the value is that entry, and a comparison with it is cheaper than a search in the
// list. Otherwise no name equals the value: names contain neither commas nor percent signs.
//
// It matches only the fields in alwaysWritten.
var writtenRead = regexp.MustCompile(`params\.written\.(` + strings.Join(alwaysWritten, "|") + `)\b`)

// unruledVariable is true if an object is updated or deleted in a namespace without rules.
const unruledVariable = "unruled"

// RulelessUpdate begins the patch of a policy that matches updates. The patch leaves updates
// unchanged in a namespace that has lost its rules.
const RulelessUpdate = `variables.` + unruledVariable + ` ? [] : (`

// rulesVariable begins the names of the variables for fields of TenantRules.
const rulesVariable = "rules"

// formatVariableName returns the name of the variable for a field of TenantRules.
func formatVariableName(field string) string {
	return rulesVariable + strings.ToUpper(field[:1]) + field[1:]
}

// readFromVariables makes an expression read all of a tenant's rules from variables.
func readFromVariables(expression string) string {
	expression = writtenRead.ReplaceAllStringFunc(expression, func(read string) string {
		annotations := "variables." + gatekeeperRules
		key := v1alpha1.RulesAnnotationPrefix + writtenRead.FindStringSubmatch(read)[1]
		return fmt.Sprintf(`(%[1]q in %[2]s ? %[2]s[%[1]q] : "")`, key, annotations)
	})
	return ruleRead.ReplaceAllStringFunc(expression, func(read string) string {
		return "variables." + formatVariableName(ruleRead.FindStringSubmatch(read)[1])
	})
}

// readFromNamespace makes an expression read a tenant's rules in the way that the API server
// evaluates fastest. Lists are read from variables, which are evaluated once. For all other
// values a variable would cost more than it saves.
func readFromNamespace(expression string) string {
	expression = writtenRead.ReplaceAllStringFunc(expression, func(read string) string {
		key := v1alpha1.RulesAnnotationPrefix + writtenRead.FindStringSubmatch(read)[1]
		return fmt.Sprintf("%s[%q]", namespaceRules, key)
	})
	return ruleRead.ReplaceAllStringFunc(expression, func(read string) string {
		field := ruleRead.FindStringSubmatch(read)[1]
		if r, ok := fieldsOfRules[field]; ok && r.kind != reflect.Slice {
			return "(" + r.buildReadExpression(namespaceRules) + ")"
		}
		return "variables." + formatVariableName(field)
	})
}

// namespaceRules is the CEL expression for the annotations of the namespace. An expression
// that reads a missing annotation fails, and the request is refused.
const namespaceRules = "namespaceObject.metadata.annotations"

// hasRules is the CEL condition that the namespace has rules. All rules include the tenant.
var hasRules = fmt.Sprintf(`has(%[1]s) && %[2]q in %[1]s`, namespaceRules, v1alpha1.RulesAnnotationPrefix+"tenant")

// ruleRewriter describes how the expressions of a policy read a tenant's rules.
type ruleRewriter struct {
	rules []rule
	// updates is set if the policy matches updates or deletions of whole objects, not only of
	// their subresources.
	updates bool
}

func newRuleRewriter(resources []Resource, expressions ...string) ruleRewriter {
	whole := func(name string) bool { return !strings.Contains(name, "/") }
	return ruleRewriter{
		rules: findReadRules(listRuleFields(v1alpha1.TenantRulesSpec{}), expressions...),
		updates: slices.ContainsFunc(resources, func(r Resource) bool {
			return slices.ContainsFunc(r.Resources, whole) &&
				(slices.Contains(r.Operations, admissionv1.Update) || slices.Contains(r.Operations, admissionv1.Delete))
		}),
	}
}

// allowsRulelessUpdates reports whether the policy must allow updates and deletions in a namespace without
// rules. In such a namespace creation is refused, but existing objects may be changed: if the
// removal of finalizers were denied, the namespace could never be deleted. Subresources are
// not exempt, because deleting an object requires none of the matched ones.
func (r ruleRewriter) allowsRulelessUpdates() bool { return r.updates && len(r.rules) > 0 }

// buildVariables returns the variables that read rules. They precede the variables that use them.
func (r ruleRewriter) buildVariables() []Variable {
	var all []Variable
	if r.allowsRulelessUpdates() {
		all = append(all, Variable{unruledVariable, fmt.Sprintf(`request.operation in ["UPDATE", "DELETE"] &&
			(!has(request.subResource) || request.subResource == "") && !(%s)`, hasRules)})
	}
	for _, rule := range r.rules {
		if rule.kind == reflect.Slice {
			all = append(all, Variable{formatVariableName(rule.field), rule.buildReadExpression(namespaceRules)})
		}
	}
	return all
}

// rewriteRule replaces reads of params by reads of the namespace.
func (r ruleRewriter) rewriteRule(asked Rule) Rule {
	asked.Expression = readFromNamespace(removeIndentation(asked.Expression))
	asked.Message = readFromNamespace(removeIndentation(asked.Message))
	asked.FastPath = readFromNamespace(removeIndentation(asked.FastPath))
	if r.allowsRulelessUpdates() {
		// This comes last, so it is evaluated only if the rule is violated or the rules are
		// missing.
		asked.Expression = "(" + asked.Expression + ") || variables." + unruledVariable
	}
	return asked
}

// rewritePatch replaces reads of params by reads of the namespace in a patch.
func (r ruleRewriter) rewritePatch(expression string) string {
	if expression = readFromNamespace(removeIndentation(expression)); r.allowsRulelessUpdates() {
		return RulelessUpdate + expression + ")"
	}
	return expression
}

// listExpressions returns the expressions of variables and rules.
func listExpressions(variables []Variable, rules []Rule) []string {
	var all []string
	for _, v := range variables {
		all = append(all, v.Expression)
	}
	for _, r := range rules {
		all = append(all, r.Expression, r.Message)
	}
	return all
}

// findReadRules returns the rules that the expressions read.
func findReadRules(rules []rule, expressions ...string) []rule {
	read := map[string]bool{}
	for _, match := range ruleRead.FindAllStringSubmatch(strings.Join(expressions, "\n"), -1) {
		read[match[1]] = true
	}
	return slices.DeleteFunc(rules, func(r rule) bool { return !read[r.field] })
}

// BuildAnnotations returns a tenant's rules as annotations of its namespaces, from which the
// policies read them. Rules that allow nothing are left out: the API server copies a
// namespace's annotations four times for each pod that is created.
func BuildAnnotations(rules v1alpha1.TenantRulesSpec) map[string]string {
	all := map[string]string{}
	for _, r := range listRuleFields(rules) {
		if !r.allowsNothing() || slices.Contains(alwaysWritten, r.field) {
			all[r.annotationKey()] = r.value
		}
	}
	return all
}

// alwaysWritten are the lists that expressions read in their annotation form, as
// params.written.
var alwaysWritten = []string{"imagePullPolicies", "pools", "registries"}

// allowsNothing reports whether an absent annotation has the same meaning as the rule.
func (r rule) allowsNothing() bool {
	return (r.kind == reflect.Slice || r.optional) && r.value == "" || r.kind == reflect.Bool && r.value == "false"
}

// ListPools returns the pools in a namespace's rules. The default pool is the first.
func ListPools(namespace client.Object) []string {
	names := namespace.GetAnnotations()[v1alpha1.RulesAnnotationPrefix+"pools"]
	if names == "" {
		return nil
	}
	return strings.Split(names, ",") // names of pools need no escaping
}

// FindNamespacesOnPool returns the namespaces whose pods may run on a pool, except namespaces that are
// being deleted. If no Tenant uses the pool, these are the namespaces of deleted Tenants.
func FindNamespacesOnPool(pool string, namespaces []corev1.Namespace) []corev1.Namespace {
	return slices.DeleteFunc(slices.Clone(namespaces), func(n corev1.Namespace) bool {
		return n.DeletionTimestamp != nil || !slices.Contains(ListPools(&n), pool)
	})
}

// AnnotateNamespace writes a tenant's rules to annotations of its namespace. It adds a label if the
// tenant has enforced settings or a trial.
func AnnotateNamespace(namespace client.Object, rules v1alpha1.TenantRulesSpec) {
	if slices.ContainsFunc(listRuleFields(rules), rule.isSetting) {
		addLabel(namespace, v1alpha1.SettingsLabel, "true")
	}
	annotations := map[string]string{}
	maps.Copy(annotations, namespace.GetAnnotations())
	maps.Copy(annotations, BuildAnnotations(rules))
	namespace.SetAnnotations(annotations)
}

// isSetting reports whether the policies on enforced settings and trials read the rule. Optional
// text is always an enforced setting.
func (r rule) isSetting() bool { return (r.optional || r.field == "trial") && r.value != "" }

// rule is a field of TenantRules, with its JSON name, as an annotation.
type rule struct {
	field, value string
	kind         reflect.Kind
	// optional is set for text that may be missing, which means the same as no text.
	optional bool
}

func (r rule) annotationKey() string { return v1alpha1.RulesAnnotationPrefix + r.field }

// buildReadExpression returns a CEL expression that reads the rule from annotations. A missing list is
// empty, and so allows nothing. A missing boolean is false, and missing optional text is empty. The
// expression fails for any other missing rule, and for a missing list that is always written.
func (r rule) buildReadExpression(annotations string) string {
	value := fmt.Sprintf("%s[%q]", annotations, r.annotationKey())
	switch r.kind {
	case reflect.Slice:
		none := ""
		if !slices.Contains(alwaysWritten, r.field) {
			none = fmt.Sprintf("!(%q in %s) || ", r.annotationKey(), annotations)
		}
		return none + strings.ReplaceAll(`V == "" ? [] : !V.contains("%") ? V.split(",") : `+
			`V.split(",").map(v, v.replace("%2C", ",").replace("%25", "%"))`, "V", value)
	case reflect.Int64:
		return fmt.Sprintf(`int(%s)`, value)
	case reflect.Bool:
		return fmt.Sprintf(`%q in %s && %s == "true"`, r.annotationKey(), annotations, value)
	default:
		if r.optional {
			return fmt.Sprintf(`%q in %s ? %s : ""`, r.annotationKey(), annotations, value)
		}
		return value
	}
}

// buildLenientRead returns read for Gatekeeper, without failures: any missing rule allows nothing.
func (r rule) buildLenientRead() string {
	annotations := "variables." + gatekeeperRules
	read := r.buildReadExpression(annotations)
	none, ok := map[reflect.Kind]string{reflect.Slice: "[]", reflect.Int64: "0", reflect.String: `""`}[r.kind]
	if !ok || r.kind == reflect.Slice && !slices.Contains(alwaysWritten, r.field) {
		return read
	}
	return fmt.Sprintf(`%q in %s ? (%s) : %s`, r.annotationKey(), annotations, read, none)
}

// escaper escapes the entries of a list, so that they contain no commas. Names of groups may
// have commas.
var escaper = strings.NewReplacer("%", "%25", ",", "%2C")

// fieldsOfRules has all fields of TenantRules, by their JSON names.
var fieldsOfRules = func() map[string]rule {
	all := map[string]rule{}
	for _, r := range listRuleFields(v1alpha1.TenantRulesSpec{}) {
		all[r.field] = r
	}
	return all
}()

// listRuleFields returns the fields of a tenant's rules. Each is text, a number, a boolean, a quantity or a
// list of text: annotations can represent nothing else.
func listRuleFields(rules v1alpha1.TenantRulesSpec) []rule { return listFields(reflect.ValueOf(rules)) }

func listFields(rules reflect.Value) []rule {
	var all []rule
	for field, value := range rules.Fields() {
		if field.Anonymous {
			all = append(all, listFields(value)...)
			continue
		}
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		r := rule{field: name}
		// Text of a type of its own, such as unknownAnnotations, has a default, and so is never missing.
		r.optional = field.Type == reflect.TypeFor[string]() && options == "omitempty"
		r.kind, r.value = formatValue(field, value)
		all = append(all, r)
	}
	return all
}

// formatValue returns a field of a tenant's rules as the value of an annotation, and its kind in expressions.
func formatValue(field reflect.StructField, value reflect.Value) (reflect.Kind, string) {
	if field.Type == reflect.TypeFor[*resource.Quantity]() {
		if value.IsNil() {
			return reflect.String, ""
		}
		return reflect.String, value.Interface().(*resource.Quantity).String()
	}
	if field.Type.Kind() == reflect.Pointer {
		if value.IsNil() {
			value = reflect.New(field.Type.Elem())
		}
		value = value.Elem()
	}
	switch kind := value.Kind(); kind {
	case reflect.String:
		return kind, value.String()
	case reflect.Int64:
		return kind, strconv.FormatInt(value.Int(), 10)
	case reflect.Bool:
		return kind, strconv.FormatBool(value.Bool())
	case reflect.Slice:
		texts := make([]string, value.Len())
		for i := range texts {
			texts[i] = escaper.Replace(value.Index(i).String())
		}
		if len(texts) == 1 && texts[0] == "" {
			return kind, "," // a list with one empty string, since "" is the empty list
		}
		return kind, strings.Join(texts, ",")
	default:
		panic(fmt.Sprintf("TenantRules: %s is a %s, which no annotation can carry", field.Name, field.Type))
	}
}
