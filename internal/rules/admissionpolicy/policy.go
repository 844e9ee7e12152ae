// Package admissionpolicy writes croft's admission policies in a common form: they apply to
// tenants' namespaces only, read the tenant's rules from annotations of the namespace, deny
// requests if required rules are missing, and fail closed.
//
// The API server already has the request's namespace, so the cost of a policy does not depend
// on the number of tenants. A parameter that is found by a selector, or one binding per
// tenant, would cost more with each tenant (kubernetes/kubernetes#133383).
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
	"croft.dev/croft/internal/declare/rights"
)

// OperatorUser is the user name of croft's operator.
const OperatorUser = "system:serviceaccount:" + v1alpha1.SystemNamespace + ":" + v1alpha1.ManagedBy

// CopierUser is the user name of `croft copy-secrets`.
const CopierUser = "system:serviceaccount:" + v1alpha1.SystemNamespace + ":" + rights.Copier

// GarbageCollector is the user name of the controller that deletes objects whose owner was deleted.
const GarbageCollector = "system:serviceaccount:kube-system:generic-garbage-collector"

// namespaceController is the controller that deletes the objects in namespaces that are being
// deleted.
const namespaceController = "system:serviceaccount:kube-system:namespace-controller"

// Resource is a resource that a policy matches.
type Resource struct {
	Group      string
	Version    string
	Resources  []string
	Operations []admissionv1.OperationType
}

// findScope limits a wildcard, such as * or */scale, to namespaced objects. A namespace selector
// alone does not: it also matches cluster-scoped objects, such as the CSINode that each kubelet
// creates. A resource that is named has only one scope.
func (r Resource) findScope() admissionv1.ScopeType {
	if slices.ContainsFunc(r.Resources, func(name string) bool { return strings.HasPrefix(name, "*") }) {
		return admissionv1.NamespacedScope
	}
	return admissionv1.AllScopes
}

// Variable is a CEL expression that other expressions refer to as variables.Name.
type Variable struct{ Name, Expression string }

// Rule is a requirement of a ValidatingAdmissionPolicy.
type Rule struct {
	// Name identifies the rule within the policy: lower-case words and hyphens. The message
	// to the tenant begins with the name in brackets.
	Name string
	// Summary is the requirement as a line of text.
	Summary string
	// Expression is a CEL expression that is true if the rule allows the request.
	Expression string
	// Message is a CEL expression for the message to the tenant: the field, and the values
	// that are allowed.
	Message string
	// Exception is the field of a tenant, such as policy.registries, by which a platform
	// admin allows more, or "". The message names it.
	Exception string
	// Trial is the field below policy by whose name in policy.trial the rule warns instead of
	// refusing, or "".
	Trial string
	// Costly is set if Expression costs more than Message. Message is then evaluated for every
	// request: evaluating Expression again, to decide whether the message is needed, would
	// double the cost.
	Costly bool
	// FastPath is an optional CEL expression that implies Expression, iterates over no list and
	// is cheaper. It is evaluated first, also for objects that exceed their bounds. It avoids
	// the evaluation of messages that cannot evaluate Expression again: the messages of Costly
	// rules, and of rules that call the authorizer.
	FastPath string
	// LoopFree is set if Expression iterates over no list. The rule is then also evaluated for
	// objects that exceed their bounds.
	LoopFree bool
	// UsuallyFast is set if FastPath is true for nearly every object. Policies that inline
	// variables merge such rules into one validation, which evaluates their FastPath
	// expressions first: see together. These rules are evaluated only within the bounds, must
	// not call the authorizer, and must not be Costly.
	UsuallyFast bool

	guarded bool
}

// RuleAnnotation is the prefix of a policy's annotations with the requirement of each rule,
// so that readers of the policy need not read CEL. The rule's name follows the prefix.
// ExceptionAnnotation is the prefix of the annotations with the field that allows more.
// SaysAnnotation describes a mutating policy.
const (
	RuleAnnotation      = "rule.croft.dev/"
	ExceptionAnnotation = "exception.croft.dev/"
	SaysAnnotation      = "croft.dev/says"
)

// toValidation returns the rule in the API server's form. The API server evaluates a message
// expression for every request, also for allowed ones. A constant message costs nothing.
func (r Rule) toValidation() admissionv1.Validation {
	v := admissionv1.Validation{
		Expression: removeIndentation(r.Expression), Reason: ptr.To(metav1.StatusReasonForbidden),
	}
	if text, same := parseConstant(r.Message); same {
		v.Message = RefusalPrefix(r.Name) + text
	} else {
		v.MessageExpression = r.buildMessageExpression()
	}
	return v
}

// toValidations returns rules in the API server's form. The API server reports the first
// violated rule. Merged rare rules take the position of the first of them.
func toValidations(asked []Rule, lean bool) []admissionv1.Validation {
	var all []admissionv1.Validation
	var rare []Rule
	at := 0
	for _, r := range asked {
		if !lean || !r.UsuallyFast {
			all = append(all, r.toValidation())
			continue
		}
		if len(rare) == 0 {
			at = len(all)
		}
		rare = append(rare, r)
	}
	if len(rare) > 0 {
		all = slices.Insert(all, at, mergeRules(rare))
	}
	return all
}

// buildRefusalMessage returns a CEL expression for the message to the tenant.
func (r Rule) buildRefusalMessage() string {
	return Quote(RefusalPrefix(r.Name)) + " + (" + removeIndentation(r.Message) + ")"
}

// literals matches string literals that are concatenated.
var (
	literals = regexp.MustCompile(`^"(?:[^"\\]|\\.)*"(?:\s*\+\s*"(?:[^"\\]|\\.)*")*$`)
	literal  = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)
)

// parseConstant returns the value of an expression that consists of string literals only.
func parseConstant(expression string) (string, bool) {
	expression = removeIndentation(expression)
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

// buildMessageExpression returns an expression that is empty unless the rule is violated. Message
// expressions cannot call the authorizer, so they do not evaluate such a rule again.
func (r Rule) buildMessageExpression() string {
	message := r.buildRefusalMessage()
	if !r.Costly && !strings.Contains(r.Expression, "authorizer.") {
		return "(" + removeIndentation(r.Expression) + `) ? "" : ` + message
	}
	var none []string
	if r.FastPath != "" {
		none = append(none, removeIndentation(r.FastPath))
	}
	if r.guarded {
		none = append(none, "!variables."+withinVariable)
	}
	if len(none) > 0 {
		return strings.Join(none, " || ") + ` ? "" : ` + message
	}
	return message
}

// RefusalPrefix returns the prefix of a rule's messages to tenants.
func RefusalPrefix(rule string) string { return "[" + rule + "] " }

// Selection selects the objects that a policy matches by croft's label.
type Selection string

const (
	// Marked selects objects with croft's label, or whose old version has it.
	Marked Selection = "In"
	// Unmarked selects objects without croft's label, or whose old version lacks it.
	Unmarked Selection = "NotIn"
)

// Validating is a policy that denies requests or warns.
type Validating struct {
	Name      string
	Resources []Resource
	// ExcludedResources are resources that are excluded from Resources.
	ExcludedResources []Resource
	// Selection excludes objects before anything else is evaluated. If empty, no objects are
	// excluded.
	Selection Selection
	// ExcludingLabels are labels that exclude an object, at the same time as Selection.
	ExcludingLabels []string
	// NamespaceLabels select namespaces with all of these labels, by key, with one of the values, or
	// any value for an empty list. Only croft sets the labels. Other namespaces have no cost.
	// Defaults to the label of all tenants' namespaces.
	NamespaceLabels map[string][]string
	// IgnoresTenantRules is set if the policy does not read a tenant's rules.
	IgnoresTenantRules bool
	// ClusterWide is for objects outside of all namespaces, and for objects that could choose by
	// their own labels whether the policy matches them. Such a policy sets IgnoresTenantRules,
	// and its match conditions decide whether an object belongs to a tenant.
	ClusterWide bool
	// WarnOnly is set if the policy allows requests, and sends a warning about violated rules.
	WarnOnly bool
	// Audits is set if violated rules are recorded in the audit log, too.
	Audits bool
	// MatchConditions are CEL expressions, by name, that must all be true for the policy to
	// apply. They can use neither namespaceObject nor variables, and therefore no rules.
	MatchConditions map[string]string
	// Bounds are the maximum numbers of entries of each list that an expression iterates
	// over: see Bound. Rules and variables are evaluated only within them. Match conditions
	// must check them themselves.
	Bounds []Bound
	// EarlyVariables are variables that the bounds use. They iterate only over lists that an earlier
	// bound limits.
	EarlyVariables []Variable
	Variables      []Variable
	Rules          []Rule

	// ofTemplates is set if the objects are templates of pods.
	ofTemplates bool
	// inlinesVariables is set if variables that are read once are inlined.
	inlinesVariables bool
}

// HasRule reports whether the policy has a rule of the given name.
func (v Validating) HasRule(rule string) bool {
	return slices.ContainsFunc(v.ListRules(), func(r Rule) bool { return r.Name == rule })
}

// Objects returns the policy and its binding.
func (v Validating) Objects() []client.Object {
	actions := []admissionv1.ValidationAction{admissionv1.Deny}
	if v.WarnOnly {
		actions[0] = admissionv1.Warn
	}
	if v.Audits {
		actions = append(actions, admissionv1.Audit)
	}
	declared, asked := v.listVariables(), v.ListRules()
	read := newRuleRewriter(v.Resources, listExpressions(declared, asked)...)
	all := combineVariables(read.buildVariables(), declared)
	for i := range asked {
		asked[i] = read.rewriteRule(asked[i])
	}
	if v.inlinesVariables {
		all, asked = inlineVariables(all, asked, 2)
	}
	policy := &admissionv1.ValidatingAdmissionPolicy{
		TypeMeta:   makeTypeMeta("ValidatingAdmissionPolicy"),
		ObjectMeta: metav1.ObjectMeta{Name: v.Name, Annotations: describeRules(asked)},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			FailurePolicy:    ptr.To(admissionv1.Fail),
			MatchConstraints: matchTenantResources(v.Resources, v.NamespaceLabels, v.Selection),
			MatchConditions:  toMatchConditions(v.MatchConditions),
			Variables:        toAPIVariables(all),
		},
	}
	policy.Spec.MatchConstraints.ExcludeResourceRules = toResourceRules(v.ExcludedResources)
	selector := policy.Spec.MatchConstraints.ObjectSelector
	for _, label := range v.ExcludingLabels {
		selector.MatchExpressions = append(selector.MatchExpressions,
			metav1.LabelSelectorRequirement{Key: label, Operator: metav1.LabelSelectorOpDoesNotExist})
	}
	if v.ClusterWide {
		policy.Spec.MatchConstraints.NamespaceSelector = &metav1.LabelSelector{}
	}
	policy.Spec.Validations = toValidations(asked, v.inlinesVariables)
	return []client.Object{policy, &admissionv1.ValidatingAdmissionPolicyBinding{
		TypeMeta:   makeTypeMeta("ValidatingAdmissionPolicyBinding"),
		ObjectMeta: metav1.ObjectMeta{Name: v.Name},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName:        v.Name,
			ValidationActions: actions,
		},
	}}
}

// Mutating is a policy that changes objects.
type Mutating struct {
	Name string
	// Summary describes the policy in one line of text.
	Summary   string
	Resources []Resource
	// NamespaceLabels select the namespaces: see Validating.
	NamespaceLabels map[string][]string
	// MatchConditions are CEL expressions, by name, that must all be true for the policy to
	// mutate an object. They should exclude objects that need no change: the API server
	// converts the object even for an empty patch, and invokes the policy again after its own
	// change.
	MatchConditions map[string]string
	Variables       []Variable
	// Patch is a CEL expression for a list of JSONPatch. It is a single expression, since the
	// order of several mutations is not defined. It must be idempotent, since the API server
	// evaluates it again if a webhook has changed the object afterwards.
	Patch string

	// inlinesVariables is set if variables that are read once are inlined.
	inlinesVariables bool
}

// Objects returns the policy and its binding.
func (m Mutating) Objects() []client.Object {
	read := newRuleRewriter(m.Resources, append(listExpressions(m.Variables, nil), m.Patch)...)
	all, patch := combineVariables(read.buildVariables(), m.Variables), read.rewritePatch(m.Patch)
	if m.inlinesVariables {
		var rules []Rule
		all, rules = inlineVariables(all, []Rule{{Expression: patch}}, 1)
		patch = rules[0].Expression
	}
	return []client.Object{
		&admissionv1.MutatingAdmissionPolicy{
			TypeMeta:   makeTypeMeta("MutatingAdmissionPolicy"),
			ObjectMeta: metav1.ObjectMeta{Name: m.Name, Annotations: map[string]string{SaysAnnotation: m.Summary}},
			Spec: admissionv1.MutatingAdmissionPolicySpec{
				FailurePolicy:      ptr.To(admissionv1.Fail),
				ReinvocationPolicy: admissionv1.IfNeededReinvocationPolicy,
				MatchConstraints:   matchTenantResources(m.Resources, m.NamespaceLabels, ""),
				MatchConditions:    toMatchConditions(m.MatchConditions),
				Variables:          toAPIVariables(all),
				Mutations: []admissionv1.Mutation{{
					PatchType: admissionv1.PatchTypeJSONPatch,
					JSONPatch: &admissionv1.JSONPatch{Expression: patch},
				}},
			},
		},
		&admissionv1.MutatingAdmissionPolicyBinding{
			TypeMeta:   makeTypeMeta("MutatingAdmissionPolicyBinding"),
			ObjectMeta: metav1.ObjectMeta{Name: m.Name},
			Spec:       admissionv1.MutatingAdmissionPolicyBindingSpec{PolicyName: m.Name},
		},
	}
}

func describeRules(rules []Rule) map[string]string {
	all := make(map[string]string, len(rules))
	for _, r := range rules {
		all[RuleAnnotation+r.Name] = r.Summary
		if r.Exception != "" {
			all[ExceptionAnnotation+r.Name] = r.Exception
		}
	}
	return all
}

// NotByPlatform returns the match condition that a request comes from a user other than
// croft's operator, the platform's admins and the controller that empties deleted namespaces.
func NotByPlatform(admins []string) map[string]string {
	return map[string]string{"not-by-the-platform": fmt.Sprintf(
		"!(request.userInfo.username in [%s, %s]) && !request.userInfo.groups.exists(g, g in %s)",
		Quote(OperatorUser), Quote(namespaceController), formatAdminGroups(admins))}
}

// ByAdmins returns a CEL expression that is true for requests of the platform's admins.
func ByAdmins(admins []string) string {
	return fmt.Sprintf("request.userInfo.groups.exists(g, g in %s)", formatAdminGroups(admins))
}

func formatAdminGroups(admins []string) string {
	groups := make([]string, 0, len(admins)+1)
	for _, g := range append([]string{"system:masters"}, admins...) {
		groups = append(groups, Quote(g))
	}
	return "[" + strings.Join(groups, ", ") + "]"
}

// Quote returns a string as a CEL literal.
func Quote(s string) string { return fmt.Sprintf("%q", s) }

func makeTypeMeta(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: kind}
}

// matchTenantResources matches the resources in tenants' namespaces, in any version of their API.
func matchTenantResources(
	resources []Resource, namespaceLabels map[string][]string, selection Selection,
) *admissionv1.MatchResources {
	if len(namespaceLabels) == 0 {
		namespaceLabels = map[string][]string{v1alpha1.TenantLabel: nil}
	}
	match := &admissionv1.MatchResources{
		MatchPolicy:       ptr.To(admissionv1.Equivalent),
		NamespaceSelector: &metav1.LabelSelector{},
		ObjectSelector:    &metav1.LabelSelector{},
	}
	for _, key := range slices.Sorted(maps.Keys(namespaceLabels)) {
		requirement := metav1.LabelSelectorRequirement{Key: key, Operator: metav1.LabelSelectorOpExists}
		if values := namespaceLabels[key]; len(values) > 0 {
			requirement.Operator, requirement.Values = metav1.LabelSelectorOpIn, values
		}
		match.NamespaceSelector.MatchExpressions = append(match.NamespaceSelector.MatchExpressions, requirement)
	}
	if selection != "" {
		match.ObjectSelector.MatchExpressions = []metav1.LabelSelectorRequirement{{
			Key:      v1alpha1.ManagedByLabel,
			Operator: metav1.LabelSelectorOperator(selection),
			Values:   []string{v1alpha1.ManagedBy},
		}}
	}
	match.ResourceRules = toResourceRules(resources)
	return match
}

func toResourceRules(resources []Resource) []admissionv1.NamedRuleWithOperations {
	var rules []admissionv1.NamedRuleWithOperations
	for _, r := range resources {
		rules = append(rules, admissionv1.NamedRuleWithOperations{
			RuleWithOperations: admissionv1.RuleWithOperations{
				Operations: r.Operations,
				Rule: admissionv1.Rule{
					APIGroups:   []string{r.Group},
					APIVersions: []string{r.Version},
					Resources:   r.Resources,
					Scope:       ptr.To(r.findScope()),
				},
			},
		})
	}
	return rules
}

func toMatchConditions(only map[string]string) []admissionv1.MatchCondition {
	var list []admissionv1.MatchCondition
	for _, name := range slices.Sorted(maps.Keys(only)) {
		list = append(list, admissionv1.MatchCondition{Name: name, Expression: removeIndentation(only[name])})
	}
	return list
}

// combineVariables returns the variables that read the rules, followed by the variables that are
// computed from them.
func combineVariables(read, made []Variable) []Variable {
	all := slices.Concat(read, made)
	for i := range all {
		all[i].Expression = readFromNamespace(removeIndentation(all[i].Expression))
	}
	return all
}

func toAPIVariables(variables []Variable) []admissionv1.Variable {
	list := make([]admissionv1.Variable, 0, len(variables))
	for _, v := range variables {
		list = append(list, admissionv1.Variable{Name: v.Name, Expression: v.Expression})
	}
	return list
}

// removeIndentation removes the indentation that an expression has in Go source, so that it is readable
// in `kubectl get -o yaml`.
func removeIndentation(expression string) string {
	lines := strings.Split(strings.TrimSpace(expression), "\n")
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	return strings.Join(lines, "\n")
}
