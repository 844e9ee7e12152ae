package admissionpolicy

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
)

// BoundsRule is the name of the rule that every policy with Bounds has.
const BoundsRule = "bounds"

// Bound is the maximum number of entries of a list or a map in an object.
//
// The time that CEL takes for a list grows with the square of its length, while the API
// server's cost limit grows with the length: a list of 20,000 entries took 11 seconds, and
// 500 take 10 milliseconds. So sizes are checked first, and no expression iterates over a
// list that exceeds its bound.
type Bound struct {
	// Path is the field, such as spec.rules or metadata.annotations. The part after "[]"
	// is a field of each entry of a list, as in spec.ingress[].from: the bound counts the
	// entries in all of them together. A list must come before the lists inside of it.
	Path string
	// Max is the maximum number of entries.
	Max int
	// Reason explains why legitimate objects have no more entries.
	Reason string
	// Advice is the advice for users who need more entries. It defaults to "write several
	// objects".
	Advice string
	// Size is a CEL expression for the size, if it differs from the size of the field. It may
	// use early variables, and is not evaluated for the old object. Unit names the counted
	// entries. It defaults to "entries".
	Size, Unit string
	// FastPath is an optional CEL expression that is true only for objects within the bound,
	// and that is cheaper than counting. It may use early variables, and is not evaluated for
	// the old object.
	FastPath string
	// UsedByPatch is set if the policy that mutates pods iterates over the list as well.
	UsedByPatch bool
	// Sample is one entry as JSON that is costly to evaluate and that the tenant may use,
	// with %d for its number. An entry of a map is an object with one key. Tests fill the
	// list with samples.
	Sample string
}

// Variables that every policy with Bounds has.
const (
	// withinVariable is true if the object is within all bounds.
	withinVariable = "within"
	// comparableVariable is true if there is an old object within all bounds, so that a rule
	// may compare with it. If the old object exceeds a bound, the object is treated as a new
	// one.
	comparableVariable = "comparable"
	// asBeforeVariable is true if an object that exceeds a bound has not changed in any field
	// that the rules read.
	asBeforeVariable = "asBefore"
)

// Comparable is a CEL expression that is true if a rule may compare the object with the old
// one.
const Comparable = "variables." + comparableVariable

// view is the way in which a policy's expressions access an object's fields.
type view string

const (
	// nowView and beforeView access the object and the old object.
	nowView    view = "object"
	beforeView view = "oldObject"
	// templateView accesses a template of pods, by variables that are named like the fields.
	templateView view = "variables"
)

// splitPath splits a path into an expression that always has a value, and the optional fields
// below it.
func (v view) splitPath(path string) (string, []string) {
	fields := strings.Split(path, ".")
	switch {
	case v == templateView && fields[0] == "metadata":
		return string(v) + "." + fields[1], fields[2:]
	case fields[0] == "metadata" || fields[0] == "spec":
		return string(v) + "." + fields[0], fields[1:]
	default:
		return string(v), fields
	}
}

// findOptionalParent returns the optional field at the beginning of a path, if the path continues below
// it: bounds below the same field are checked only if the field is set.
func (v view) findOptionalParent(path string) string {
	start, fields := v.splitPath(strings.ReplaceAll(path, "[]", ""))
	if len(fields) < 2 {
		return ""
	}
	return start + "." + fields[0]
}

// buildSizeExpression returns a CEL expression for the number of entries that a bound counts.
func (b Bound) buildSizeExpression(v view) string {
	if b.Size != "" {
		return b.Size
	}
	first, inside, nested := strings.Cut(b.Path, "[].")
	if !nested {
		return buildFieldExpression(v, first, func(field string) string { return field + ".size()" }, "0")
	}
	sum := func(field string) string { return buildSumExpression(field, inside, 0) }
	return buildFieldExpression(v, first, sum, "0")
}

// buildFitsExpression returns a CEL expression that is true if the object is within the bound.
func (b Bound) buildFitsExpression(v view) string {
	if b.FastPath != "" && v != beforeView {
		return fmt.Sprintf("(%s || %s <= %d)", b.FastPath, b.buildSizeExpression(v), b.Max)
	}
	if b.Size != "" || strings.Contains(b.Path, "[]") {
		return fmt.Sprintf("%s <= %d", b.buildSizeExpression(v), b.Max)
	}
	return buildFieldExpression(v, b.Path, func(field string) string {
		return fmt.Sprintf("%s.size() <= %d", field, b.Max)
	}, "true")
}

// buildSumExpression returns an expression for the sum of the sizes of a field in all entries of a list.
func buildSumExpression(list, path string, depth int) string {
	entry := view("e" + strconv.Itoa(depth))
	first, inside, nested := strings.Cut(path, "[].")
	each := buildFieldExpression(entry, first, func(field string) string {
		if nested {
			return buildSumExpression(field, inside, depth+1)
		}
		return field + ".size()"
	}, "0")
	return fmt.Sprintf("%s.map(%s, %s).sum()", list, entry, each)
}

// buildFieldExpression returns an expression about a field, with another value if the field is absent.
func buildFieldExpression(v view, path string, about func(field string) string, otherwise string) string {
	start, fields := v.splitPath(path)
	var there []string
	for _, f := range fields {
		start += "." + f
		there = append(there, "has("+start+")")
	}
	if len(there) == 0 {
		return about(start)
	}
	return "(" + strings.Join(there, " && ") + " ? " + about(start) + " : " + otherwise + ")"
}

// buildWithinExpression returns a CEL expression that is true if an object is within all bounds. It stops at
// the first bound that is exceeded, so that no list is iterated over before its own size is
// checked.
func buildWithinExpression(bounds []Bound, v view) string {
	var each []string
	for i := 0; i < len(bounds); {
		if bounds[i].Size != "" && v == beforeView {
			i++
			continue
		}
		// Bounds below one optional field are checked together.
		under, end := v.findOptionalParent(bounds[i].Path), i+1
		for end < len(bounds) && under != "" && v.findOptionalParent(bounds[end].Path) == under {
			end++
		}
		var together []string
		for _, b := range bounds[i:end] {
			together = append(together, b.buildFitsExpression(v))
		}
		text := strings.Join(together, " &&\n")
		if len(together) > 1 {
			text = "(!has(" + under + ") || " + text + ")"
		}
		each, i = append(each, text), end
	}
	return cmp.Or(strings.Join(each, " &&\n"), "true")
}

// buildExcessMessage returns a CEL expression for a text that names the first list over its bound.
func buildExcessMessage(bounds []Bound, v view) string {
	text := `""`
	for _, b := range slices.Backward(bounds) {
		size := b.buildSizeExpression(v)
		text = fmt.Sprintf("%s > %d ? %s + string(%s) + %s :\n%s", size, b.Max, Quote(b.Path+": "), size,
			Quote(fmt.Sprintf(" %s are more than the %d that an object of a tenant may have: %s",
				cmp.Or(b.Unit, "entries"), b.Max, cmp.Or(b.Advice, "write several objects"))), text)
	}
	return "(" + text + ")"
}

// buildUnchangedExpression returns a CEL expression that is true if no field that rules with these bounds
// read has changed, apart from removed finalizers. So objects that are older than the bounds
// can be labelled, finish and be deleted. A list that becomes shorter but still exceeds its
// bound is refused, because no rule has checked its entries.
func buildUnchangedExpression(bounds []Bound) string {
	same := []string{`request.operation == "UPDATE"`}
	var seen []string
	for _, b := range bounds {
		parts := strings.Split(strings.ReplaceAll(b.Path, "[]", ""), ".")
		root := parts[0]
		if root == "metadata" {
			root += "." + parts[1]
		}
		if slices.Contains(seen, root) {
			continue
		}
		seen = append(seen, root)
		if root == "metadata.finalizers" {
			same = append(same, strings.ReplaceAll(fewerFinalizers, "MAX", strconv.Itoa(b.Max)))
			continue
		}
		same = append(same, fmt.Sprintf("has(object.%[1]s) == has(oldObject.%[1]s) && "+
			"(!has(object.%[1]s) || object.%[1]s == oldObject.%[1]s)", root))
	}
	return strings.Join(same, " &&\n")
}

// fewerFinalizers is a CEL expression that is true if the object has the old finalizers, or
// some of them. If there were more than MAX, any shorter list is allowed, since no expression
// iterates over a list of that size.
const fewerFinalizers = `(!has(object.metadata.finalizers) || has(oldObject.metadata.finalizers) &&
	(object.metadata.finalizers == oldObject.metadata.finalizers ||
		object.metadata.finalizers.size() < oldObject.metadata.finalizers.size() &&
		(oldObject.metadata.finalizers.size() > MAX ||
			object.metadata.finalizers.all(f, f in oldObject.metadata.finalizers))))`

// HasBounds reports whether the policy has bounds.
func (v Validating) HasBounds() bool { return len(v.Bounds) > 0 }

// ListRules returns the policy's rules, preceded by the rule on its bounds. Other rules, unless
// they are LoopFree, are evaluated only for objects within the bounds.
func (v Validating) ListRules() []Rule {
	if !v.HasBounds() {
		rules := slices.Clone(v.Rules)
		for i, r := range rules {
			if r.FastPath != "" {
				rules[i].Expression = removeIndentation(r.FastPath) + " || " + removeIndentation(r.Expression)
			}
		}
		return rules
	}
	rules := []Rule{{
		Name: BoundsRule, Summary: "lists and maps are not longer than croft's policies can evaluate",
		Expression: "variables." + withinVariable + " || variables." + asBeforeVariable,
		Message:    buildExcessMessage(v.Bounds, v.selectView()),
	}}
	if v.ofTemplates {
		rules = makeTemplateRules(rules)
	}
	for _, r := range v.Rules {
		if r.UsuallyFast {
			r.Expression = "(" + removeIndentation(r.FastPath) + ") || " + removeIndentation(r.Expression)
		}
		if r.guarded = !r.LoopFree; r.guarded {
			r.Expression = "!variables." + withinVariable + " || (" + removeIndentation(r.Expression) + ")"
		}
		if r.FastPath != "" && !r.UsuallyFast {
			r.Expression = removeIndentation(r.FastPath) + " || " + r.Expression
		}
		rules = append(rules, r)
	}
	return rules
}

func (v Validating) selectView() view {
	if v.ofTemplates {
		return templateView
	}
	return nowView
}

// listVariables returns the policy's variables, including the variables for its bounds.
func (v Validating) listVariables() []Variable {
	if !v.HasBounds() {
		if v.readsVariable(Comparable) {
			updated := Variable{Name: comparableVariable, Expression: `request.operation == "UPDATE"`}
			return slices.Concat(v.EarlyVariables, []Variable{updated}, v.Variables)
		}
		return slices.Concat(v.EarlyVariables, v.Variables)
	}
	bounds := []Variable{
		{Name: withinVariable, Expression: buildWithinExpression(v.Bounds, v.selectView())},
		{Name: asBeforeVariable, Expression: buildUnchangedExpression(v.Bounds)},
		{
			Name:       comparableVariable,
			Expression: `request.operation == "UPDATE" && ` + buildWithinExpression(v.Bounds, beforeView),
		},
	}
	deletes := func(r Resource) bool { return slices.Contains(r.Operations, admissionv1.Delete) }
	if slices.ContainsFunc(v.Resources, deletes) {
		bounds[0].Expression = "object == null ||\n" + bounds[0].Expression
	}
	if v.ofTemplates {
		// Templates lead to warnings only, and are not compared with the old object.
		bounds[1].Expression, bounds[2].Expression = "false", "false"
	}
	return slices.Concat(v.EarlyVariables, bounds, v.Variables)
}

func (v Validating) readsVariable(variable string) bool {
	return slices.ContainsFunc(listExpressions(v.Variables, v.Rules), func(expression string) bool {
		return strings.Contains(expression, variable)
	})
}

// BuildBoundsCondition returns a CEL expression for the match conditions of a mutating policy, which cannot
// use variables. It is true if the policy may iterate over the lists of the object and of the
// old object. An object that exceeds a bound is left unchanged, and the validating policy
// refuses it.
func BuildBoundsCondition(bounds []Bound) string {
	return "(" + buildWithinExpression(bounds, nowView) + ") && " +
		"(request.operation != \"UPDATE\" || oldObject == null ||\n" + buildWithinExpression(bounds, beforeView) + ")"
}
