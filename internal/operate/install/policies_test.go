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
	if wrong := findWrongCases(t, install.PolicyObjects()); len(wrong) > 0 {
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
				for i := range p.Spec.Validations {
					v := &p.Spec.Validations[i]
					if slices.ContainsFunc(admissionpolicy.ParseRules(*v), func(r admissionpolicy.ParsedRule) bool { return r.Rule == rule }) {
						policytest.WaiveRule(v, rule)
					}
				}
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
		if len(findWrongCases(t, objects)) == 0 {
			t.Errorf("no case detects the policy that %s", name)
		}
	}
}

// findWrongCases returns the cases with another answer than expected.
func findWrongCases(t *testing.T, objects []client.Object) []string {
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
		if file.Policy != install.TenantsPolicy {
			continue
		}
		for _, c := range file.Cases {
			object, old, err := file.BuildObjects(c, rulefile.Scene{})
			if err != nil {
				t.Fatal(err)
			}
			request := evaluator.Request{
				User: makeUser(c), Verb: cmp.Or(c.Verb, "update"), Authorized: true, Stored: true,
				Resource: evaluator.FindResource(object.GroupVersionKind()), Name: object.GetName(), Object: object, Old: old,
			}
			if request.Verb == "delete" {
				request.Old, request.Object = object, nil
			}
			answer, err := e.Evaluate(t.Context(), request)
			if err != nil {
				t.Fatal(err)
			}
			if problem := compareDenials(c, answer.Denials); problem != "" {
				wrong = append(wrong, fmt.Sprintf("%s: %s: %s", name, c.Name, problem))
			}
		}
	}
	return wrong
}

// compareDenials returns the difference between the expected and the given answer.
func compareDenials(c rulefile.Case, denials []evaluator.Denial) string {
	switch {
	case !c.Refused && len(denials) == 0:
		return ""
	case !c.Refused:
		return "refused: " + denials[0].Message
	case len(denials) != 1:
		return fmt.Sprintf("%d denials", len(denials))
	case denials[0].DeniedBy != install.TenantsPolicy || denials[0].Rule != c.Rule || !strings.Contains(denials[0].Message, c.Message):
		return "refused by another rule or message: " + denials[0].Message
	}
	return ""
}

func makeUser(c rulefile.Case) user.Info {
	groups := append([]string{user.AllAuthenticated}, c.Groups...)
	if namespace, name, ok := strings.Cut(c.User, "/"); ok {
		account := serviceaccount.UserInfo(namespace, name, "")
		return &user.DefaultInfo{Name: account.GetName(), Groups: append(groups, account.GetGroups()...)}
	}
	return &user.DefaultInfo{Name: cmp.Or(c.User, "ann"), Groups: groups}
}
