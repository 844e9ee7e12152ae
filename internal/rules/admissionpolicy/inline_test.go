package admissionpolicy

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/equality"
)

func TestInlined(t *testing.T) {
	for name, c := range map[string]struct {
		variables []Variable
		rule      Rule
		left      []Variable
		want      Rule
	}{
		"another name is written wherever it is read": {
			[]Variable{{"spec", "object.spec"}, {"new", `request.operation == "CREATE"`}},
			Rule{Expression: `!variables.new || has(variables.spec.a) && variables.spec.a`, Message: `variables.spec.a`},
			nil, Rule{Expression: `!(request.operation == "CREATE") || has(object.spec.a) && object.spec.a`, Message: `object.spec.a`},
		},
		"what is read once is written there": {
			[]Variable{{"a", "object.a + 1"}, {"b", "variables.a + 2"}},
			Rule{Expression: "variables.b > 3"}, nil, Rule{Expression: "((object.a + 1) + 2) > 3"},
		},
		"what is read twice stays": {
			[]Variable{{"a", "object.a + 1"}},
			Rule{Expression: "variables.a > 3 || variables.a < 2"}, []Variable{{"a", "object.a + 1"}}, Rule{Expression: "variables.a > 3 || variables.a < 2"},
		},
		"what a loop reads stays": {
			[]Variable{{"a", "object.a + 1"}},
			Rule{Expression: `object.list.all(i, i != ")" && i in variables.a)`}, []Variable{{"a", "object.a + 1"}}, Rule{Expression: `object.list.all(i, i != ")" && i in variables.a)`},
		},
		"what is looped over is written there": {
			[]Variable{{"a", "object.a + []"}},
			Rule{Expression: `variables.a.all(i, i)`}, nil, Rule{Expression: `(object.a + []).all(i, i)`},
		},
		"a message's variable is written into it": {
			[]Variable{{"a", "object.a + 1"}},
			Rule{Expression: "variables.a > 3", Message: `string(variables.a) + string(variables.a)`},
			nil, Rule{Expression: "(object.a + 1) > 3", Message: `string((object.a + 1)) + string((object.a + 1))`},
		},
		"but not into its loops": {
			[]Variable{{"a", "object.a + 1"}},
			Rule{Expression: "variables.a > 3", Message: `object.list.map(i, i + variables.a)`},
			[]Variable{{"a", "object.a + 1"}}, Rule{Expression: "(object.a + 1) > 3", Message: `object.list.map(i, i + variables.a)`},
		},
		"a tenant's rules are written twice": {
			[]Variable{{"rulesA", "object.a + 1"}},
			Rule{Expression: "variables.rulesA > 3 || variables.rulesA < 2"}, nil, Rule{Expression: "(object.a + 1) > 3 || (object.a + 1) < 2"},
		},
		"an optional field is written wherever it is read": {
			[]Variable{{"a", "has(object.a.b) ? object.a.b : {}"}, {"c", "has(object.a.b) ? object.a.c : {}"}},
			Rule{Expression: `"k" in variables.a && "k" in variables.c && "l" in variables.a && "l" in variables.c`},
			[]Variable{{"c", "has(object.a.b) ? object.a.c : {}"}},
			Rule{Expression: `"k" in (has(object.a.b) ? object.a.b : {}) && "k" in variables.c && "l" in (has(object.a.b) ? object.a.b : {}) && "l" in variables.c`},
		},
		"an unused variable is left out": {[]Variable{{"a", "object.a + 1"}}, Rule{Expression: "true"}, nil, Rule{Expression: "true"}},
	} {
		left, rules := inlineVariables(c.variables, []Rule{c.rule}, 2)
		if len(left) != len(c.left) || len(left) > 0 && !equality.Semantic.DeepEqual(left, c.left) {
			t.Errorf("%s: the variables %v are left, want %v", name, left, c.left)
		}
		if rules[0] != c.want {
			t.Errorf("%s: %+v, want %+v", name, rules[0], c.want)
		}
	}
}

func TestConstant(t *testing.T) {
	for expression, want := range map[string]string{
		`"a"`: "a", `"a " + "b"`: "a b", "\"a \\\"x\\\" \" +\n\t\"b\"": `a "x" b`,
		`"a" + x`: "", `x`: "", `"a" + string(1) + "b"`: "", `"a" + ("b")`: "", ``: "",
	} {
		got, same := parseConstant(expression)
		if got != want || same != (want != "") {
			t.Errorf("%s is %q, %t; want %q", expression, got, same, want)
		}
	}
}
