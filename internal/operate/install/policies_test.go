package install_test

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/internal/operate/install"
	"croft.dev/croft/internal/rules/admissionpolicy"
	"croft.dev/croft/internal/rules/admissionpolicy/policytest"
	"croft.dev/croft/internal/rules/evaluator"
	"croft.dev/croft/internal/rules/rulefile"
)

// TestTenantsPolicy tries the cases in the rule files.
func TestTenantsPolicy(t *testing.T) {
	if wrong := findWrongCases(t, install.PolicyObjects(), install.TenantsPolicy); len(wrong) > 0 {
		t.Error(strings.Join(wrong, "\n"))
	}
}

// TestTenantsPolicyMutants removes each rule and each part of the scope of the policy once. A case
// must detect it.
func TestTenantsPolicyMutants(t *testing.T) {
	type policy = admissionv1.ValidatingAdmissionPolicy
	type binding = admissionv1.ValidatingAdmissionPolicyBinding
	waive := func(rule string) func(client.Object) {
		return func(o client.Object) {
			if p, ok := o.(*policy); ok {
				removeRule(p, rule)
			}
		}
	}
	ignore := func(operation admissionv1.OperationType) func(client.Object) {
		return func(o client.Object) {
			if p, ok := o.(*policy); ok {
				r := &p.Spec.MatchConstraints.ResourceRules[0]
				r.Operations = slices.DeleteFunc(r.Operations, func(one admissionv1.OperationType) bool { return one == operation })
			}
		}
	}
	exempt := func(condition string) func(client.Object) {
		return func(o client.Object) {
			if p, ok := o.(*policy); ok {
				p.Spec.MatchConditions = append(p.Spec.MatchConditions, admissionv1.MatchCondition{Name: "exempt", Expression: condition})
			}
		}
	}
	for name, mutate := range map[string]func(client.Object){
		"without protected":            waive("protected"),
		"without protected-namespaces": waive("protected-namespaces"),
		"ignores UPDATE":               ignore(admissionv1.Update),
		"ignores DELETE":               ignore(admissionv1.Delete),
		"exempts platform admins":      exempt(`!("platform-admins" in request.userInfo.groups)`),
		"exempts cluster admins":       exempt(`!("system:masters" in request.userInfo.groups)`),
		"exempts croft's operator":     exempt(fmt.Sprintf("request.userInfo.username != %q", admissionpolicy.OperatorUser)),
		"exempts service accounts":     exempt(`!request.userInfo.username.startsWith("system:serviceaccount:")`),
		"only warns": func(o client.Object) {
			if b, ok := o.(*binding); ok {
				b.Spec.ValidationActions = []admissionv1.ValidationAction{admissionv1.Warn}
			}
		},
		// A change that ends the protection could then remove namespaces as well.
		"reads the new object": func(o client.Object) {
			if p, ok := o.(*policy); ok {
				for i := range p.Spec.Variables {
					if v := &p.Spec.Variables[i]; v.Name == "protected" {
						v.Expression = strings.ReplaceAll(v.Expression, "oldObject", "(object == null ? oldObject : object)")
					}
				}
			}
		},
		"matches pools": func(o client.Object) {
			if p, ok := o.(*policy); ok {
				p.Spec.MatchConstraints.ResourceRules[0].Resources = []string{"tenants", "pools"}
			}
		},
	} {
		var objects []client.Object
		for _, o := range install.PolicyObjects() {
			if o.GetName() == install.TenantsPolicy {
				mutate(o)
			}
			objects = append(objects, o)
		}
		if len(findWrongCases(t, objects, install.TenantsPolicy)) == 0 {
			t.Errorf("no case detects the policy that %s", name)
		}
	}
}

// findWrongCases returns the cases of policies with another answer than expected.
func findWrongCases(t *testing.T, objects []client.Object, policies ...string) []string {
	t.Helper()
	e, err := evaluator.New(objects)
	if err != nil {
		t.Fatal(err)
	}
	files, err := rulefile.ReadCases(os.DirFS("rules"))
	if err != nil {
		t.Fatal(err)
	}
	var wrong []string
	for name, file := range files {
		if !slices.Contains(policies, file.Policy) {
			continue
		}
		for _, c := range file.Cases {
			object, old, err := file.BuildObjects(c, rulefile.Scene{})
			if err != nil {
				t.Fatal(err)
			}
			request := evaluator.Request{
				User: makeUser(c), Verb: c.Verb, Subresource: c.Subresource, Authorized: true,
				// The operator's pods are dry runs.
				Stored:   c.User != "croft-system/croft",
				Resource: evaluator.FindResource(object.GroupVersionKind()), Namespace: object.GetNamespace(), Name: object.GetName(),
				Object: object, Old: old,
			}
			switch {
			case request.Verb == "delete":
				request.Old, request.Object = object, nil
			case request.Verb == "" && old != nil:
				request.Verb = "update"
			case request.Verb == "":
				request.Verb = "create"
			}
			answer, err := e.Evaluate(t.Context(), request)
			if err != nil {
				t.Fatalf("%s: %s: %v", name, c.Name, err)
			}
			if problem := compareAnswer(file.Policy, c, answer); problem != "" {
				wrong = append(wrong, fmt.Sprintf("%s: %s: %s", name, c.Name, problem))
			}
		}
	}
	return wrong
}

// compareAnswer returns the difference between the expected and the given answer.
func compareAnswer(policy string, c rulefile.Case, answer evaluator.Answer) string {
	switch {
	case c.Refused != (len(answer.Denials) > 0):
		return fmt.Sprintf("refused: %t: %+v", len(answer.Denials) > 0, answer.Denials)
	case len(answer.Denials) > 1:
		return fmt.Sprintf("%d denials", len(answer.Denials))
	case c.Refused && (answer.Denials[0].DeniedBy != policy || answer.Denials[0].Rule != c.Rule):
		return "refused by " + answer.Denials[0].DeniedBy + ": " + answer.Denials[0].Message
	case c.Refused && !strings.Contains(answer.Denials[0].Message, c.Message):
		return "refused with another message: " + answer.Denials[0].Message
	case (c.Warning == "") != (len(answer.Warnings) == 0), !strings.Contains(strings.Join(answer.Warnings, "\n"), c.Warning):
		return fmt.Sprintf("warnings: %q", answer.Warnings)
	default:
		return ""
	}
}

// removeRule removes a rule from a policy.
func removeRule(p *admissionv1.ValidatingAdmissionPolicy, rule string) {
	for i := range p.Spec.Validations {
		v := &p.Spec.Validations[i]
		if slices.ContainsFunc(admissionpolicy.ParseRules(*v), func(r admissionpolicy.ParsedRule) bool { return r.Rule == rule }) {
			policytest.WaiveRule(v, rule)
		}
	}
}

func makeUser(c rulefile.Case) user.Info {
	groups := append([]string{user.AllAuthenticated}, c.Groups...)
	if namespace, name, ok := strings.Cut(c.User, "/"); ok {
		account := serviceaccount.UserInfo(namespace, name, "")
		return &user.DefaultInfo{Name: account.GetName(), Groups: append(groups, account.GetGroups()...)}
	}
	return &user.DefaultInfo{Name: cmp.Or(c.User, "ann"), Groups: groups}
}
