// Package admissionpolicy writes croft's admission policies in the one form that they
// all have: they hold in tenants' namespaces only, read the tenant's rules from
// annotations of the namespace where they need them, deny where these are
// missing, and fail closed.
//
// The API server has the request's own namespace at hand, so a policy costs the same
// however many tenants there are; a parameter that is found by a selector, or one
// binding per tenant, would not (kubernetes/kubernetes#133383).
package admissionpolicy

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
)

// OperatorUser is the name under which croft's operator writes.
const OperatorUser = "system:serviceaccount:" + v1alpha1.SystemNamespace + ":" + v1alpha1.ManagedBy

// namespaceController empties namespaces that are being deleted.
const namespaceController = "system:serviceaccount:kube-system:namespace-controller"

// Resource is a resource that a policy matches.
type Resource struct {
	Group      string
	Version    string
	Resources  []string
	Operations []admissionv1.OperationType
}

// scope limits a wildcard to namespaced objects. A namespace selector alone does not: it
// matches cluster-scoped objects, such as the CSINode that each kubelet creates. A
// resource that is named has only one scope.
func (r Resource) scope() admissionv1.ScopeType {
	if slices.Contains(r.Resources, "*") {
		return admissionv1.NamespacedScope
	}
	return admissionv1.AllScopes
}

// Variable is a CEL expression that others refer to as variables.Name.
type Variable struct{ Name, Expression string }

// Rule is one thing that a ValidatingAdmissionPolicy asks of a request.
type Rule struct {
	// Name identifies the rule within the policy: lower-case words and hyphens. The
	// message to the tenant begins with it, in brackets.
	Name string
	// Says is the rule's requirement, in one line for people.
	Says string
	// Holds is a CEL expression that is true where the request is fine.
	Holds string
	// Message is a CEL expression of the message to the tenant: which field, what is
	// allowed.
	Message string
	// Exception is the field of a tenant, as policy.registries, by which a platform admin
	// allows more; "" for none. The message names it.
	Exception string
	// Costly says that Holds costs more than Message, which is then made for every
	// request: asking once more whether it is needed would double the cost.
	Costly bool
	// Fine is true only if the rule holds, iterates over no list and is cheaper than
	// Holds. It is evaluated first, also for objects over their bounds. "" for none. It
	// saves evaluating the messages that cannot evaluate Holds again: those of Costly
	// rules, and of rules that call the authorizer.
	Fine string
	// Cheap rules iterate over no list, and are evaluated for objects over their bounds,
	// too.
	Cheap bool
	// Rare rules are Fine for nearly every object. A lean policy merges them into one
	// validation, which is Fine if all of them are: see together. Their Fine is
	// evaluated only within the bounds, they do not call the authorizer, and they are
	// not Costly.
	Rare bool

	guarded bool
}

// RuleAnnotation is the prefix of a policy's annotation with a rule's requirement, so
// that readers of the policy need not read CEL; the rule's name follows.
// ExceptionAnnotation is the prefix of the annotation with the field that allows more.
// SaysAnnotation describes a mutating policy.
const (
	RuleAnnotation      = "rule.croft.dev/"
	ExceptionAnnotation = "exception.croft.dev/"
	SaysAnnotation      = "croft.dev/says"
)

// validation is the rule in the API server's form. A message expression is evaluated for
// every request, also for allowed ones. A constant message costs nothing.
func (r Rule) validation() admissionv1.Validation {
	v := admissionv1.Validation{Expression: clean(r.Holds), Reason: ptr.To(metav1.StatusReasonForbidden)}
	if text, same := constant(r.Message); same {
		v.Message = Refusal(r.Name) + text
	} else {
		v.MessageExpression = r.message()
	}
	return v
}

// validations are the API server's form of rules. It reports the first broken rule:
// merged rare rules are at the place of the first of them.
func validations(asked []Rule, lean bool) []admissionv1.Validation {
	var all []admissionv1.Validation
	var rare []Rule
	at := 0
	for _, r := range asked {
		if !lean || !r.Rare {
			all = append(all, r.validation())
			continue
		}
		if len(rare) == 0 {
			at = len(all)
		}
		rare = append(rare, r)
	}
	if len(rare) > 0 {
		all = slices.Insert(all, at, together(rare))
	}
	return all
}

// says is a CEL expression of the message to the tenant.
func (r Rule) says() string { return Quote(Refusal(r.Name)) + " + (" + clean(r.Message) + ")" }

// literals are strings that are added up.
var (
	literals = regexp.MustCompile(`^"(?:[^"\\]|\\.)*"(?:\s*\+\s*"(?:[^"\\]|\\.)*")*$`)
	literal  = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)
)

// constant is the text of an expression that reads nothing.
func constant(expression string) (string, bool) {
	expression = clean(expression)
	if !literals.MatchString(expression) {
		return "", false
	}
	var all strings.Builder
	for _, quoted := range literal.FindAllString(expression, -1) {
		text, err := strconv.Unquote(quoted)
		if err != nil {
			return "", false
		}
		all.WriteString(text)
	}
	return all.String(), true
}

// message is made only where the rule is broken. Only the rules themselves can ask the
// authorizer.
func (r Rule) message() string {
	message := r.says()
	if !r.Costly && !strings.Contains(r.Holds, "authorizer.") {
		return "(" + clean(r.Holds) + `) ? "" : ` + message
	}
	var none []string
	if r.Fine != "" {
		none = append(none, clean(r.Fine))
	}
	if r.guarded {
		none = append(none, "!variables."+withinVariable)
	}
	if len(none) > 0 {
		return strings.Join(none, " || ") + ` ? "" : ` + message
	}
	return message
}

// Refusal is the prefix of a rule's messages to tenants.
func Refusal(rule string) string { return "[" + rule + "] " }

// Selection says which objects a policy looks at, by croft's mark.
type Selection string

const (
	// Marked are the objects that carry croft's mark, or carried it before.
	Marked Selection = "In"
	// Unmarked are the objects that do not carry croft's mark, or did not before.
	Unmarked Selection = "NotIn"
)

// Validating is a policy that denies.
type Validating struct {
	Name      string
	Resources []Resource
	// Except are left out of Resources.
	Except []Resource
	// Selection leaves out objects before anything else is evaluated; none if empty.
	Selection Selection
	// Unlabelled are labels whose objects are left out, as early as by Selection.
	Unlabelled []string
	// Ruleless policies do not read a tenant's rules.
	Ruleless bool
	// Anywhere is for objects that are in no namespace, or that would choose by
	// their own labels whether the policy looks at them. Such a policy is Ruleless,
	// and its conditions say which tenant's business an object is.
	Anywhere bool
	// Warns allows requests, and answers those that break a rule with a warning.
	Warns bool
	// Only are CEL expressions, by name, that must all hold for the policy to
	// look at a request. They can use neither namespaceObject nor variables, and so no
	// rules.
	Only map[string]string
	// Bounds are the maximum numbers of entries of each list that an expression iterates
	// over: see Bound. Rules and variables are evaluated only within them; conditions
	// must check them themselves.
	Bounds []Bound
	// Early variables are for the bounds, too. They go through lists that a bound
	// before theirs is for, or through none.
	Early     []Variable
	Variables []Variable
	Rules     []Rule

	// ofTemplates: the objects are templates of pods.
	ofTemplates bool
	// lean policies are sent without variables that are read once.
	lean bool
}

// Has reports whether one of the rules has the name.
func (v Validating) Has(rule string) bool {
	return slices.ContainsFunc(v.Asked(), func(r Rule) bool { return r.Name == rule })
}

// Objects returns the policy and its bindings.
func (v Validating) Objects() []client.Object {
	action := admissionv1.Deny
	if v.Warns {
		action = admissionv1.Warn
	}
	declared, asked := v.declared(), v.Asked()
	read := readingOf(v.Resources, expressionsOf(declared, asked)...)
	all := variables(read.variables(), declared)
	for i := range asked {
		asked[i] = read.rule(asked[i])
	}
	if v.lean {
		all, asked = inlined(all, asked, 2)
	}
	policy := &admissionv1.ValidatingAdmissionPolicy{
		TypeMeta:   typeMeta("ValidatingAdmissionPolicy"),
		ObjectMeta: metav1.ObjectMeta{Name: v.Name, Annotations: said(asked)},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			FailurePolicy:    ptr.To(admissionv1.Fail),
			MatchConstraints: tenants(v.Resources, v.Selection),
			MatchConditions:  conditions(v.Only),
			Variables:        written(all),
		},
	}
	policy.Spec.MatchConstraints.ExcludeResourceRules = resourceRules(v.Except)
	selector := policy.Spec.MatchConstraints.ObjectSelector
	for _, label := range v.Unlabelled {
		selector.MatchExpressions = append(selector.MatchExpressions,
			metav1.LabelSelectorRequirement{Key: label, Operator: metav1.LabelSelectorOpDoesNotExist})
	}
	if v.Anywhere {
		policy.Spec.MatchConstraints.NamespaceSelector = &metav1.LabelSelector{}
	}
	policy.Spec.Validations = validations(asked, v.lean)
	return []client.Object{policy, &admissionv1.ValidatingAdmissionPolicyBinding{
		TypeMeta:   typeMeta("ValidatingAdmissionPolicyBinding"),
		ObjectMeta: metav1.ObjectMeta{Name: v.Name},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName:        v.Name,
			ValidationActions: []admissionv1.ValidationAction{action},
		},
	}}
}

// Mutating is a policy that changes objects.
type Mutating struct {
	Name string
	// Says describes the policy, in one line for people.
	Says      string
	Resources []Resource
	// Only are CEL expressions, by name, that must all be true for the policy to mutate.
	// A policy without anything to change is best left out by one: the API server
	// converts the object even for an empty patch, and reinvokes the policy after its
	// own change.
	Only      map[string]string
	Variables []Variable
	// Patch is a CEL expression that gives a list of JSONPatch. It is one
	// expression, since the order of several is not defined; and it must find
	// nothing left to do in its own outcome, since it is run again when a webhook
	// has changed the object after it.
	Patch string

	// lean policies are sent without variables that are read once.
	lean bool
}

// Objects returns the policy and its bindings.
func (m Mutating) Objects() []client.Object {
	read := readingOf(m.Resources, append(expressionsOf(m.Variables, nil), m.Patch)...)
	all, patch := variables(read.variables(), m.Variables), read.patch(m.Patch)
	if m.lean {
		var rules []Rule
		all, rules = inlined(all, []Rule{{Holds: patch}}, 1)
		patch = rules[0].Holds
	}
	return []client.Object{
		&admissionv1.MutatingAdmissionPolicy{
			TypeMeta:   typeMeta("MutatingAdmissionPolicy"),
			ObjectMeta: metav1.ObjectMeta{Name: m.Name, Annotations: map[string]string{SaysAnnotation: m.Says}},
			Spec: admissionv1.MutatingAdmissionPolicySpec{
				FailurePolicy:      ptr.To(admissionv1.Fail),
				ReinvocationPolicy: admissionv1.IfNeededReinvocationPolicy,
				MatchConstraints:   tenants(m.Resources, ""),
				MatchConditions:    conditions(m.Only),
				Variables:          written(all),
				Mutations: []admissionv1.Mutation{{
					PatchType: admissionv1.PatchTypeJSONPatch,
					JSONPatch: &admissionv1.JSONPatch{Expression: patch},
				}},
			},
		},
		&admissionv1.MutatingAdmissionPolicyBinding{
			TypeMeta:   typeMeta("MutatingAdmissionPolicyBinding"),
			ObjectMeta: metav1.ObjectMeta{Name: m.Name},
			Spec:       admissionv1.MutatingAdmissionPolicyBindingSpec{PolicyName: m.Name},
		},
	}
}

func said(rules []Rule) map[string]string {
	all := make(map[string]string, len(rules))
	for _, r := range rules {
		all[RuleAnnotation+r.Name] = r.Says
		if r.Exception != "" {
			all[ExceptionAnnotation+r.Name] = r.Exception
		}
	}
	return all
}

// NotByPlatform is a condition that holds for requests of everybody but croft's
// operator, the platform's admins and the controller that empties namespaces.
func NotByPlatform(admins []string) map[string]string {
	return map[string]string{"not-by-the-platform": fmt.Sprintf(
		"!(request.userInfo.username in [%s, %s]) && !request.userInfo.groups.exists(g, g in %s)",
		Quote(OperatorUser), Quote(namespaceController), adminGroups(admins))}
}

// ByAdmins is a CEL expression that is true for requests of the platform's admins.
func ByAdmins(admins []string) string {
	return fmt.Sprintf("request.userInfo.groups.exists(g, g in %s)", adminGroups(admins))
}

func adminGroups(admins []string) string {
	groups := make([]string, 0, len(admins)+1)
	for _, g := range append([]string{"system:masters"}, admins...) {
		groups = append(groups, Quote(g))
	}
	return "[" + strings.Join(groups, ", ") + "]"
}

// Quote writes a string as a CEL literal.
func Quote(s string) string { return fmt.Sprintf("%q", s) }

func typeMeta(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: kind}
}

// tenants matches the resources in tenants' namespaces, in any version of their API.
func tenants(resources []Resource, selection Selection) *admissionv1.MatchResources {
	match := &admissionv1.MatchResources{
		MatchPolicy: ptr.To(admissionv1.Equivalent),
		NamespaceSelector: &metav1.LabelSelector{
			MatchExpressions: []metav1.LabelSelectorRequirement{{
				Key: v1alpha1.TenantLabel, Operator: metav1.LabelSelectorOpExists,
			}},
		},
		ObjectSelector: &metav1.LabelSelector{},
	}
	if selection != "" {
		match.ObjectSelector.MatchExpressions = []metav1.LabelSelectorRequirement{{
			Key:      v1alpha1.ManagedByLabel,
			Operator: metav1.LabelSelectorOperator(selection),
			Values:   []string{v1alpha1.ManagedBy},
		}}
	}
	match.ResourceRules = resourceRules(resources)
	return match
}

func resourceRules(resources []Resource) []admissionv1.NamedRuleWithOperations {
	var rules []admissionv1.NamedRuleWithOperations
	for _, r := range resources {
		rules = append(rules, admissionv1.NamedRuleWithOperations{
			RuleWithOperations: admissionv1.RuleWithOperations{
				Operations: r.Operations,
				Rule: admissionv1.Rule{
					APIGroups:   []string{r.Group},
					APIVersions: []string{r.Version},
					Resources:   r.Resources,
					Scope:       ptr.To(r.scope()),
				},
			},
		})
	}
	return rules
}

func conditions(only map[string]string) []admissionv1.MatchCondition {
	var list []admissionv1.MatchCondition
	for _, name := range slices.Sorted(maps.Keys(only)) {
		list = append(list, admissionv1.MatchCondition{Name: name, Expression: clean(only[name])})
	}
	return list
}

// variables are those that read the rules, followed by those computed from them.
func variables(read, made []Variable) []Variable {
	all := slices.Concat(read, made)
	for i := range all {
		all[i].Expression = fromNamespace(clean(all[i].Expression))
	}
	return all
}

func written(variables []Variable) []admissionv1.Variable {
	list := make([]admissionv1.Variable, 0, len(variables))
	for _, v := range variables {
		list = append(list, admissionv1.Variable{Name: v.Name, Expression: v.Expression})
	}
	return list
}

// clean strips the indentation that an expression has in Go, so that it reads
// well in `kubectl get -o yaml`.
func clean(expression string) string {
	lines := strings.Split(strings.TrimSpace(expression), "\n")
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	return strings.Join(lines, "\n")
}
