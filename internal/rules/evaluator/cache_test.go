package evaluator_test

import (
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"croft.dev/croft/internal/rules/evaluator"
)

// TestCacheDistinguishesTypes fails if an expression is confused with one of the same text
// whose variables or result have other types.
func TestCacheDistinguishesTypes(t *testing.T) {
	policy := func(name, rule string, variables ...string) *admissionv1.ValidatingAdmissionPolicy {
		p := &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}}
		for i, v := range variables {
			p.Spec.Variables = append(p.Spec.Variables, admissionv1.Variable{Name: string(rune('a' + i)), Expression: v})
		}
		p.Spec.Validations = []admissionv1.Validation{{Expression: rule}}
		return p
	}
	e, err := evaluator.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		about, rule string
		variables   []string
		compiles    bool
	}{
		{"text", `variables.a.startsWith("a")`, []string{`"a"`}, true},
		{"a number that is asked as text was", `variables.a.startsWith("a")`, []string{`1`}, false},
		{"another text", `variables.a.startsWith("a")`, []string{`"b"`}, true},
		{"a variable of text", `true`, []string{`"a"`, `variables.a`}, true},
		{"a rule of text", `variables.a`, []string{`"a"`}, false},
	} {
		// All are derived from the first evaluator, so that each could find expressions
		// compiled for an earlier one.
		if _, err := e.With(policy(c.about, c.rule, c.variables...)); (err == nil) != c.compiles {
			t.Errorf("%s: compiles: %v, want %v: %v", c.about, err == nil, c.compiles, err)
		}
	}
}
