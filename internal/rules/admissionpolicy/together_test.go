package admissionpolicy

import (
	"slices"
	"testing"

	"croft.dev/croft/internal/rules/admissionpolicy/policytest"
)

// TestMergeRules fails if a merged rule cannot be identified, or cannot be waived alone.
func TestMergeRules(t *testing.T) {
	v := mergeRules([]Rule{
		{Name: "first", FastPath: "!has(object.a)", Expression: "object.a == 1", Message: `"a: " + string(object.a)`},
		{Name: "second-2", FastPath: "!has(object.a)", Expression: "object.b == 2", Message: `"b"`},
	})
	if want := `variables.within &&
(!has(object.a)) ||
// [first]
(object.a == 1) &&
// [second-2]
(object.b == 2)`; v.Expression != want {
		t.Errorf("asks %s\nwant %s", v.Expression, want)
	}
	if want := `variables.within &&
(!has(object.a)) ? "" :
// [first]
!(object.a == 1) ? "[first] " + ("a: " + string(object.a)) :
// [second-2]
!(object.b == 2) ? "[second-2] " + ("b") :
""`; v.MessageExpression != want {
		t.Errorf("got %s\nwant %s", v.MessageExpression, want)
	}
	var names []string
	for _, asked := range ParseRules(v) {
		names = append(names, asked.Rule)
	}
	if !slices.Equal(names, []string{"first", "second-2"}) {
		t.Errorf("the rules are %q", names)
	}
	for rule, want := range map[string]string{
		"first":    "variables.within &&\n(!has(object.a)) ||\n// [first]\ntrue &&\n// [second-2]\n(object.b == 2)",
		"second-2": "variables.within &&\n(!has(object.a)) ||\n// [first]\n(object.a == 1) &&\n// [second-2]\ntrue",
	} {
		waived := v
		if policytest.WaiveRule(&waived, rule); waived.Expression != want {
			t.Errorf("without %s it asks %s\nwant %s", rule, waived.Expression, want)
		}
	}
}

func TestParseRulesOfUnmergedRule(t *testing.T) {
	for name, v := range map[string]Rule{
		"message":            {Name: "r", Expression: "object.a", Message: `"a"`},
		"message expression": {Name: "r", Expression: "object.a", Message: `"a" + object.b`},
	} {
		validation := v.toValidation()
		if asked := ParseRules(validation); len(asked) != 1 || asked[0].Rule != "r" {
			t.Errorf("%s: asked are %+v", name, asked)
		}
		if policytest.WaiveRule(&validation, "r"); validation.Expression != "true" {
			t.Errorf("%s: asks %s without its rule", name, validation.Expression)
		}
	}
}
