package wall

import (
	"slices"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/rules/admissionpolicy"
)

// Rule is a rule of the walls, as documentation and commands show it.
type Rule struct {
	Wall, Policy string
	// Name is the rule's name. It is empty for a policy that mutates objects.
	Name string
	// Summary is the requirement, or the mutation.
	Summary string
	// WarnOnly is set if the rule warns and refuses nothing.
	WarnOnly bool
	// Exception is the field of a Tenant that a platform admin sets to allow more, or "".
	Exception string
}

// Rules returns the rules of all policies, in the order of the walls.
func Rules(p *estate.Platform) []Rule {
	var all []Rule
	warning := map[string]bool{}
	objects := PlatformObjects(p)
	for _, o := range objects {
		if b, ok := o.(*admissionv1.ValidatingAdmissionPolicyBinding); ok {
			warning[b.Spec.PolicyName] = slices.Contains(b.Spec.ValidationActions, admissionv1.Warn)
		}
	}
	for _, w := range All() {
		for _, o := range objects {
			if o.GetLabels()[v1alpha1.WallLabel] == w.Name() {
				all = append(all, collectRules(w.Name(), o, warning[o.GetName()])...)
			}
		}
		if w, ok := w.(podWall); ok {
			for _, o := range admissionpolicy.BuildPodPolicies([]admissionpolicy.Pods{w.Pods(p)}) {
				all = append(all, collectRules(w.Name(), o, warning[o.GetName()])...)
			}
		}
	}
	return all
}

func collectRules(wall string, o client.Object, warns bool) []Rule {
	var all []Rule
	rule := Rule{Wall: wall, Policy: o.GetName()}
	switch o := o.(type) {
	case *admissionv1.MutatingAdmissionPolicy:
		rule.Summary = o.Annotations[admissionpolicy.SaysAnnotation]
		all = append(all, rule)
	case *admissionv1.ValidatingAdmissionPolicy:
		for _, v := range o.Spec.Validations {
			for _, asked := range admissionpolicy.ParseRules(v) {
				rule.Name, rule.WarnOnly = asked.Rule, warns
				rule.Summary = o.Annotations[admissionpolicy.RuleAnnotation+asked.Rule]
				rule.Exception = o.Annotations[admissionpolicy.ExceptionAnnotation+asked.Rule]
				all = append(all, rule)
			}
		}
	}
	return all
}
