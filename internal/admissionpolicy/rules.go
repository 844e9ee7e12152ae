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
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
)

// Expressions of rules use params.spec.X for the field X of a tenant's TenantRules. The
// rendered expressions read the same from annotations of the namespace, which the API
// server provides as namespaceObject. A parameter of the kind TenantRules would be
// easier to read. But a restarted API server looks up the kind of a policy's parameter
// once, and then not again for half a minute: if the lookup comes before the
// CustomResourceDefinition is served, every request that the policy matches is refused
// for that time, even deletion by administrators (kubernetes/kubernetes#124237).

// ruleRead finds the fields of a tenant's rules that an expression reads.
var ruleRead = regexp.MustCompile(`params\.spec\.([A-Za-z]+)`)

// writtenRead finds the lists of a tenant's rules that an expression reads in their
// written form: params.written.X is the only entry of params.spec.X if the list has one,
// which is cheaper to compare with than a list. No other entry is equal to it if entries
// are names: they contain no comma and no percent sign.
//
// It does not match fields other than alwaysWritten.
var writtenRead = regexp.MustCompile(`params\.written\.(` + strings.Join(alwaysWritten, "|") + `)\b`)

// unruledVariable holds where an object is updated or deleted in a namespace without
// rules.
const unruledVariable = "unruled"

// RulelessUpdate begins the patch of a policy that looks at updates. They are let
// through as they are where a namespace has lost its rules.
const RulelessUpdate = `variables.` + unruledVariable + ` ? [] : (`

// rulesVariable begins the names of variables for fields of TenantRules.
const rulesVariable = "rules"

// variableOf is the variable for a field of TenantRules.
func variableOf(field string) string {
	return rulesVariable + strings.ToUpper(field[:1]) + field[1:]
}

// fromVariables makes an expression read all of a tenant's rules from variables.
func fromVariables(expression string) string {
	expression = writtenRead.ReplaceAllStringFunc(expression, func(read string) string {
		annotations := "variables." + gatekeeperRules
		key := v1alpha1.RulesAnnotationPrefix + writtenRead.FindStringSubmatch(read)[1]
		return fmt.Sprintf(`(%[1]q in %[2]s ? %[2]s[%[1]q] : "")`, key, annotations)
	})
	return ruleRead.ReplaceAllStringFunc(expression, func(read string) string {
		return "variables." + variableOf(ruleRead.FindStringSubmatch(read)[1])
	})
}

// fromNamespace makes an expression read a tenant's rules as the API server evaluates
// it. Lists come from variables, which are evaluated once; for all else, a variable would
// cost more than it saves.
func fromNamespace(expression string) string {
	expression = writtenRead.ReplaceAllStringFunc(expression, func(read string) string {
		key := v1alpha1.RulesAnnotationPrefix + writtenRead.FindStringSubmatch(read)[1]
		return fmt.Sprintf("%s[%q]", namespaceRules, key)
	})
	return ruleRead.ReplaceAllStringFunc(expression, func(read string) string {
		field := ruleRead.FindStringSubmatch(read)[1]
		if r, ok := fieldsOfRules[field]; ok && r.kind != reflect.Slice {
			return "(" + r.read(namespaceRules) + ")"
		}
		return "variables." + variableOf(field)
	})
}

// namespaceRules are the annotations of the namespace in CEL. An expression that reads a
// missing annotation is an error, which refuses the request.
const namespaceRules = "namespaceObject.metadata.annotations"

// hasRules is a CEL expression. The tenant is among all rules.
var hasRules = fmt.Sprintf(`has(%[1]s) && %[2]q in %[1]s`, namespaceRules, v1alpha1.RulesAnnotationPrefix+"tenant")

// reading is how the expressions of a policy come to a tenant's rules.
type reading struct {
	rules []rule
	// updates says that the policy looks at updates or deletions of objects, and not of
	// their subresources only.
	updates bool
}

func readingOf(resources []Resource, expressions ...string) reading {
	whole := func(name string) bool { return !strings.Contains(name, "/") }
	return reading{
		rules: rulesIn(rulesOf(v1alpha1.TenantRulesSpec{}), expressions...),
		updates: slices.ContainsFunc(resources, func(r Resource) bool {
			return slices.ContainsFunc(r.Resources, whole) &&
				(slices.Contains(r.Operations, admissionv1.Update) || slices.Contains(r.Operations, admissionv1.Delete))
		}),
	}
}

// lenient reports whether the policy has to allow updates and deletions in a namespace
// without rules. Creation is refused there. But existing objects may be changed:
// removing finalizers must not be denied, or the namespace might never be deleted. This
// does not apply to subresources: nobody needs the matched ones to remove an object.
func (r reading) lenient() bool { return r.updates && len(r.rules) > 0 }

// variables come before those that are computed from them.
func (r reading) variables() []Variable {
	var all []Variable
	if r.lenient() {
		all = append(all, Variable{unruledVariable, fmt.Sprintf(`request.operation in ["UPDATE", "DELETE"] &&
			(!has(request.subResource) || request.subResource == "") && !(%s)`, hasRules)})
	}
	for _, rule := range r.rules {
		if rule.kind == reflect.Slice {
			all = append(all, Variable{variableOf(rule.field), rule.read(namespaceRules)})
		}
	}
	return all
}

// rule replaces reads of params by reads of the namespace.
func (r reading) rule(asked Rule) Rule {
	asked.Holds = fromNamespace(clean(asked.Holds))
	asked.Message = fromNamespace(clean(asked.Message))
	asked.Fine = fromNamespace(clean(asked.Fine))
	if r.lenient() {
		// Asked for last, and so only where the rule is broken or the rules are missing.
		asked.Holds = "(" + asked.Holds + ") || variables." + unruledVariable
	}
	return asked
}

// patch replaces reads of params by reads of the namespace in a patch.
func (r reading) patch(expression string) string {
	if expression = fromNamespace(clean(expression)); r.lenient() {
		return RulelessUpdate + expression + ")"
	}
	return expression
}

// expressionsOf returns the expressions of variables and rules.
func expressionsOf(variables []Variable, rules []Rule) []string {
	var all []string
	for _, v := range variables {
		all = append(all, v.Expression)
	}
	for _, r := range rules {
		all = append(all, r.Holds, r.Message)
	}
	return all
}

// rulesIn returns the rules that expressions read.
func rulesIn(rules []rule, expressions ...string) []rule {
	read := map[string]bool{}
	for _, match := range ruleRead.FindAllStringSubmatch(strings.Join(expressions, "\n"), -1) {
		read[match[1]] = true
	}
	return slices.DeleteFunc(rules, func(r rule) bool { return !read[r.field] })
}

// Annotations are a tenant's rules as the policies read them on its namespaces. What
// allows nothing is left out: the API server copies a namespace's annotations four times
// for each pod that is created.
func Annotations(rules v1alpha1.TenantRulesSpec) map[string]string {
	all := map[string]string{}
	for _, r := range rulesOf(rules) {
		if !r.allowsNothing() || slices.Contains(alwaysWritten, r.field) {
			all[r.annotation()] = r.value
		}
	}
	return all
}

// alwaysWritten are the lists that expressions read as they are written, by
// params.written.
var alwaysWritten = []string{"imagePullPolicies", "pools", "registries"}

// allowsNothing reports whether a namespace without the rule means the same.
func (r rule) allowsNothing() bool {
	return r.kind == reflect.Slice && r.value == "" || r.kind == reflect.Bool && r.value == "false"
}

// PoolsOf returns the pools that a namespace's rules name, the default first.
func PoolsOf(namespace client.Object) []string {
	names := namespace.GetAnnotations()[v1alpha1.RulesAnnotationPrefix+"pools"]
	if names == "" {
		return nil
	}
	return strings.Split(names, ",") // names of objects need no escaping
}

// OnPool returns the namespaces whose pods belong on a pool, without those that are being
// deleted. If no tenant uses the pool, deleted tenants have left them.
func OnPool(pool string, namespaces []corev1.Namespace) []corev1.Namespace {
	return slices.DeleteFunc(slices.Clone(namespaces), func(n corev1.Namespace) bool {
		return n.DeletionTimestamp != nil || !slices.Contains(PoolsOf(&n), pool)
	})
}

// Annotate puts a tenant's rules on its namespace.
func Annotate(namespace client.Object, rules v1alpha1.TenantRulesSpec) {
	annotations := map[string]string{}
	maps.Copy(annotations, namespace.GetAnnotations())
	maps.Copy(annotations, Annotations(rules))
	namespace.SetAnnotations(annotations)
}

// rule is a field of TenantRules, under its name in JSON, as an annotation.
type rule struct {
	field, value string
	kind         reflect.Kind
}

func (r rule) annotation() string { return v1alpha1.RulesAnnotationPrefix + r.field }

// read is a CEL expression that reads the rule back from annotations. A list that is
// missing is empty, and so allows nothing; a truth value is false. Where another rule is
// missing, or a list that is always written, it fails.
func (r rule) read(annotations string) string {
	value := fmt.Sprintf("%s[%q]", annotations, r.annotation())
	switch r.kind {
	case reflect.Slice:
		none := ""
		if !slices.Contains(alwaysWritten, r.field) {
			none = fmt.Sprintf("!(%q in %s) || ", r.annotation(), annotations)
		}
		return none + strings.ReplaceAll(`V == "" ? [] : !V.contains("%") ? V.split(",") : `+
			`V.split(",").map(v, v.replace("%2C", ",").replace("%25", "%"))`, "V", value)
	case reflect.Int64:
		return fmt.Sprintf(`int(%s)`, value)
	case reflect.Bool:
		return fmt.Sprintf(`%q in %s && %s == "true"`, r.annotation(), annotations, value)
	default:
		return value
	}
}

// leniently reads the rule for Gatekeeper. A missing rule allows nothing.
func (r rule) leniently() string {
	annotations := "variables." + gatekeeperRules
	read := r.read(annotations)
	none, ok := map[reflect.Kind]string{reflect.Slice: "[]", reflect.Int64: "0", reflect.String: `""`}[r.kind]
	if !ok || r.kind == reflect.Slice && !slices.Contains(alwaysWritten, r.field) {
		return read
	}
	return fmt.Sprintf(`%q in %s ? (%s) : %s`, r.annotation(), annotations, read, none)
}

// escaper escapes the entries of a list so that they contain no comma, as names of
// groups may.
var escaper = strings.NewReplacer("%", "%25", ",", "%2C")

// fieldsOfRules are the fields that there are, by their name in JSON.
var fieldsOfRules = func() map[string]rule {
	all := map[string]rule{}
	for _, r := range rulesOf(v1alpha1.TenantRulesSpec{}) {
		all[r.field] = r
	}
	return all
}()

// rulesOf are the fields of a tenant's rules. Each is text, a number, a truth value or a
// list of texts: annotations carry nothing else.
func rulesOf(rules v1alpha1.TenantRulesSpec) []rule {
	var all []rule
	v := reflect.ValueOf(rules)
	for i := range v.NumField() {
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		field := v.Field(i)
		r := rule{field: name, kind: field.Kind()}
		switch r.kind {
		case reflect.String:
			r.value = field.String()
		case reflect.Int64:
			r.value = strconv.FormatInt(field.Int(), 10)
		case reflect.Bool:
			r.value = strconv.FormatBool(field.Bool())
		case reflect.Slice:
			values := make([]string, field.Len())
			for j := range values {
				values[j] = escaper.Replace(field.Index(j).String())
			}
			if r.value = strings.Join(values, ","); r.value == "" && len(values) > 0 {
				r.value = "," // the empty text alone, twice: no list is "" already
			}
		default:
			panic(fmt.Sprintf("TenantRules: %s is a %s, which no annotation can carry", name, r.kind))
		}
		all = append(all, r)
	}
	return all
}
