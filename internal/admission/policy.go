// Package admission writes croft's admission policies in the one form that they
// all have: they hold in tenants' namespaces only, read the namespace's
// TenantRules as their parameter where they need it, deny where these are
// missing, and fail closed.
//
// The parameter is found by a fixed name in the request's own namespace, so a
// policy costs the same however many tenants there are; a selector, or one
// binding per tenant, would not (kubernetes/kubernetes#133383).
package admission

import (
	"fmt"
	"maps"
	"slices"
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

// Resource is what a policy looks at.
type Resource struct {
	Group      string
	Version    string
	Resources  []string
	Operations []admissionv1.OperationType
}

// Variable is a CEL expression that others refer to as variables.Name.
type Variable struct{ Name, Expression string }

// Rule is one thing that a ValidatingAdmissionPolicy asks of a request.
type Rule struct {
	// Name tells the rule from the policy's others: lower-case words and hyphens.
	// What the tenant reads begins with it, in brackets.
	Name string
	// Says is what the rule asks, in one line for people.
	Says string
	// Holds is a CEL expression that is true where the request is fine.
	Holds string
	// Message is a CEL expression of what the tenant reads: which field, what is
	// allowed.
	Message string
}

// RuleAnnotation begins the key of an annotation of a policy that says what a
// rule asks, so that people who look at the policy need not read CEL; its name
// follows. SaysAnnotation says what a policy that changes things does.
const (
	RuleAnnotation = "rule.croft.dev/"
	SaysAnnotation = "croft.dev/says"
)

// message is evaluated by the API server for every request, also for those that
// the rule lets through: so it is made only where the rule is broken. Only the
// rules themselves can ask the authorizer.
func (r Rule) message() string {
	message := Quote(Refusal(r.Name)) + " + (" + clean(r.Message) + ")"
	if strings.Contains(r.Holds, "authorizer.") {
		return message
	}
	return "(" + clean(r.Holds) + `) ? "" : ` + message
}

// Refusal is how everything begins that a rule tells a tenant.
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
	// Selection leaves out objects before anything else is asked; none if empty.
	// It is the only way to let croft write into a namespace whose TenantRules the
	// API server has not seen yet: a missing parameter denies before any condition
	// is evaluated.
	Selection Selection
	// Ruleless policies do not read TenantRules.
	Ruleless bool
	// Anywhere is for objects that are in no namespace, or that would choose by
	// their own labels whether the policy looks at them. Such a policy is Ruleless,
	// and its conditions say which tenant's business an object is.
	Anywhere bool
	// Warns lets requests through, and answers those that break a rule by a
	// warning.
	Warns bool
	// Only are CEL expressions, by name, that must all hold for the policy to
	// look at a request. They can use neither namespaceObject nor variables.
	Only      map[string]string
	Variables []Variable
	Rules     []Rule
}

// Has reports whether one of the rules has the name.
func (v Validating) Has(rule string) bool {
	return slices.ContainsFunc(v.Rules, func(r Rule) bool { return r.Name == rule })
}

// Objects returns the policy and its bindings.
func (v Validating) Objects() []client.Object {
	action := admissionv1.Deny
	if v.Warns {
		action = admissionv1.Warn
	}
	policy := &admissionv1.ValidatingAdmissionPolicy{
		TypeMeta:   typeMeta("ValidatingAdmissionPolicy"),
		ObjectMeta: metav1.ObjectMeta{Name: v.Name, Annotations: said(v.Rules)},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			FailurePolicy:    ptr.To(admissionv1.Fail),
			MatchConstraints: tenants(v.Resources, v.Selection),
			MatchConditions:  conditions(v.Only),
			Variables:        variables(v.Variables),
		},
	}
	policy.Spec.MatchConstraints.ExcludeResourceRules = resourceRules(v.Except)
	if v.Anywhere {
		policy.Spec.MatchConstraints.NamespaceSelector = &metav1.LabelSelector{}
	}
	if !v.Ruleless {
		policy.Spec.ParamKind = paramKind()
	}
	for _, r := range v.Rules {
		policy.Spec.Validations = append(policy.Spec.Validations, admissionv1.Validation{
			Expression:        clean(r.Holds),
			MessageExpression: r.message(),
			Reason:            ptr.To(metav1.StatusReasonForbidden),
		})
	}
	objects := []client.Object{policy}
	for _, b := range bindings(v.Name, v.Resources, v.Ruleless) {
		objects = append(objects, &admissionv1.ValidatingAdmissionPolicyBinding{
			TypeMeta:   typeMeta("ValidatingAdmissionPolicyBinding"),
			ObjectMeta: metav1.ObjectMeta{Name: b.name},
			Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
				PolicyName:        v.Name,
				ParamRef:          b.paramRef,
				MatchResources:    b.matches,
				ValidationActions: []admissionv1.ValidationAction{action},
			},
		})
	}
	return objects
}

// Mutating is a policy that changes what is written.
type Mutating struct {
	Name string
	// Says is what the policy does, in one line for people.
	Says      string
	Resources []Resource
	// Only are CEL expressions, by name, that must all hold for the policy to
	// change anything. A policy that finds nothing to do is best left out by one:
	// the object is written anew even for an empty patch, and the policy is run a
	// second time after its own change.
	Only      map[string]string
	Variables []Variable
	// Patch is a CEL expression that gives a list of JSONPatch. It is one
	// expression, since the order of several is not defined; and it must find
	// nothing left to do in its own outcome, since it is run again when a webhook
	// has changed the object after it.
	Patch string
}

// Objects returns the policy and its bindings.
func (m Mutating) Objects() []client.Object {
	objects := []client.Object{
		&admissionv1.MutatingAdmissionPolicy{
			TypeMeta:   typeMeta("MutatingAdmissionPolicy"),
			ObjectMeta: metav1.ObjectMeta{Name: m.Name, Annotations: map[string]string{SaysAnnotation: m.Says}},
			Spec: admissionv1.MutatingAdmissionPolicySpec{
				ParamKind:          paramKind(),
				FailurePolicy:      ptr.To(admissionv1.Fail),
				ReinvocationPolicy: admissionv1.IfNeededReinvocationPolicy,
				MatchConstraints:   tenants(m.Resources, ""),
				MatchConditions:    conditions(m.Only),
				Variables:          variables(m.Variables),
				Mutations: []admissionv1.Mutation{{
					PatchType: admissionv1.PatchTypeJSONPatch,
					JSONPatch: &admissionv1.JSONPatch{Expression: clean(m.Patch)},
				}},
			},
		},
	}
	for _, b := range bindings(m.Name, m.Resources, false) {
		objects = append(objects, &admissionv1.MutatingAdmissionPolicyBinding{
			TypeMeta:   typeMeta("MutatingAdmissionPolicyBinding"),
			ObjectMeta: metav1.ObjectMeta{Name: b.name},
			Spec: admissionv1.MutatingAdmissionPolicyBindingSpec{
				PolicyName:     m.Name,
				ParamRef:       b.paramRef,
				MatchResources: b.matches,
			},
		})
	}
	return objects
}

func said(rules []Rule) map[string]string {
	all := make(map[string]string, len(rules))
	for _, r := range rules {
		all[RuleAnnotation+r.Name] = r.Says
	}
	return all
}

// NotByPlatform is a condition that holds for requests of everybody but croft's
// operator, the platform's admins and the controller that empties namespaces.
func NotByPlatform(admins []string) map[string]string {
	groups := make([]string, 0, len(admins)+1)
	for _, g := range append([]string{"system:masters"}, admins...) {
		groups = append(groups, Quote(g))
	}
	return map[string]string{"not-by-the-platform": fmt.Sprintf(
		"!(request.userInfo.username in [%s, %s]) && !request.userInfo.groups.exists(g, g in [%s])",
		Quote(OperatorUser), Quote(namespaceController), strings.Join(groups, ", "))}
}

// Quote writes a string as a CEL literal.
func Quote(s string) string { return fmt.Sprintf("%q", s) }

func typeMeta(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: kind}
}

func paramKind() *admissionv1.ParamKind {
	return &admissionv1.ParamKind{APIVersion: v1alpha1.GroupVersion.String(), Kind: "TenantRules"}
}

func paramRef(missing admissionv1.ParameterNotFoundActionType) *admissionv1.ParamRef {
	return &admissionv1.ParamRef{Name: v1alpha1.TenantRulesName, ParameterNotFoundAction: &missing}
}

// tenants matches the resources in tenants' namespaces, in whatever version of
// their API they are sent.
func tenants(resources []Resource, selection Selection) *admissionv1.MatchResources {
	match := &admissionv1.MatchResources{
		MatchPolicy: ptr.To(admissionv1.Equivalent),
		NamespaceSelector: &metav1.LabelSelector{
			MatchExpressions: []metav1.LabelSelectorRequirement{{Key: v1alpha1.TenantLabel, Operator: metav1.LabelSelectorOpExists}},
		},
		ObjectSelector: &metav1.LabelSelector{},
	}
	if selection != "" {
		match.ObjectSelector.MatchExpressions = []metav1.LabelSelectorRequirement{{
			Key: v1alpha1.ManagedByLabel, Operator: metav1.LabelSelectorOperator(selection), Values: []string{v1alpha1.ManagedBy},
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
					Scope:       ptr.To(admissionv1.AllScopes),
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

func variables(vars []Variable) []admissionv1.Variable {
	list := make([]admissionv1.Variable, 0, len(vars))
	for _, v := range vars {
		list = append(list, admissionv1.Variable{Name: v.Name, Expression: clean(v.Expression)})
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
