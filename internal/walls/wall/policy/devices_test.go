package policy

import (
	"testing"

	"github.com/google/cel-go/cel"
	"k8s.io/apiserver/pkg/cel/environment"
	"sigs.k8s.io/yaml"

	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/rules/admissionpolicy"
)

// TestDeviceClaims evaluates claims in the form of each API version. Current clusters serve
// only the newest version, so attacks cannot send the other forms.
func TestDeviceClaims(t *testing.T) {
	const own, other, many = "deviceClassName: gpu.example.com", "deviceClassName: other.example.com", "deviceClassName: gpu.example.com, count: 9"
	for name, c := range map[string]struct{ resource, spec, refusedBy string }{
		"nothing":                      {"resourceclaims", `{}`, ""},
		"one's own":                    {"resourceclaims", `{devices: {requests: [{name: a, exactly: {` + own + `}}]}}`, ""},
		"another's":                    {"resourceclaims", `{devices: {requests: [{name: a, exactly: {` + other + `}}]}}`, DeviceClassRule},
		"one's own, v1beta1":           {"resourceclaims", `{devices: {requests: [{name: a, ` + own + `}]}}`, ""},
		"another's, v1beta1":           {"resourceclaims", `{devices: {requests: [{name: a, ` + other + `}]}}`, DeviceClassRule},
		"no class":                     {"resourceclaims", `{devices: {requests: [{name: a}]}}`, DeviceClassRule},
		"another's among one's own":    {"resourceclaims", `{devices: {requests: [{name: a, firstAvailable: [{` + own + `}, {` + other + `}]}]}}`, DeviceClassRule},
		"template, one's own":          {"resourceclaimtemplates", `{spec: {devices: {requests: [{name: a, exactly: {` + own + `}}]}}}`, ""},
		"template, another's":          {"resourceclaimtemplates", `{spec: {devices: {requests: [{name: a, exactly: {` + other + `}}]}}}`, DeviceClassRule},
		"too many devices":             {"resourceclaims", `{devices: {requests: [{name: a, exactly: {` + many + `}}]}}`, "device-bounds"},
		"too many, v1beta1":            {"resourceclaims", `{devices: {requests: [{name: a, ` + many + `}]}}`, "device-bounds"},
		"too many by an alternative":   {"resourceclaims", `{devices: {requests: [{name: a, firstAvailable: [{` + own + `}, {` + many + `}]}]}}`, "device-bounds"},
		"too many by a template":       {"resourceclaimtemplates", `{spec: {devices: {requests: [{name: a, exactly: {` + many + `}}]}}}`, "device-bounds"},
		"all of a node, whatever many": {"resourceclaims", `{devices: {requests: [{name: a, exactly: {` + own + `, allocationMode: All}}]}}`, ""},
		"five alternatives": {"resourceclaims", `{devices: {requests: [{name: a, firstAvailable: [{` + own + `}, {` + own + `}]}, {name: b, firstAvailable: [{` + own + `}, {` + own + `}, {` + own + `}]}]}}`,
			"device-bounds"},
	} {
		t.Run(name, func(t *testing.T) {
			var object map[string]any
			if err := yaml.Unmarshal([]byte("spec: "+c.spec), &object); err != nil {
				t.Fatal(err)
			}
			got := refusedBy(t, buildPolicy(&estate.Platform{}, "croft-device-claims"), map[string]any{
				"object": object, "request": map[string]any{"resource": map[string]any{"resource": c.resource}},
				"params": map[string]any{"spec": map[string]any{"tenant": "a", "deviceClasses": []string{"gpu.example.com"}}},
			})
			if got != c.refusedBy {
				t.Errorf("it is refused by %q, want %q", got, c.refusedBy)
			}
		})
	}
}

// refusedBy evaluates a policy like the API server, but without one, and returns the name of
// the first violated rule.
func refusedBy(t *testing.T, p admissionpolicy.Validating, input map[string]any) string {
	t.Helper()
	env, err := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()).Env(environment.StoredExpressions)
	if err == nil {
		env, err = env.Extend(cel.Variable("object", cel.DynType), cel.Variable("request", cel.DynType), cel.Variable("params", cel.DynType),
			cel.Variable("variables", cel.MapType(cel.StringType, cel.DynType)))
	}
	if err != nil {
		t.Fatal(err)
	}
	evaluate := func(expression string) any {
		ast, issues := env.Compile(expression)
		if issues.Err() != nil {
			t.Fatal(issues.Err())
		}
		program, err := env.Program(ast)
		if err != nil {
			t.Fatal(err)
		}
		value, _, err := program.Eval(input)
		if err != nil {
			t.Fatalf("%s: %v", expression, err)
		}
		return value.Value()
	}
	variables := map[string]any{}
	input["variables"] = variables
	for _, v := range p.Variables {
		variables[v.Name] = evaluate(v.Expression)
	}
	for _, r := range p.Rules {
		if holds, _ := evaluate(r.Expression).(bool); !holds {
			if message, _ := evaluate(r.Message).(string); message == "" {
				t.Errorf("rule %s says nothing", r.Name)
			}
			return r.Name
		}
	}
	return ""
}
