package policy

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/cel/environment"
	"sigs.k8s.io/yaml"

	"croft.dev/croft/internal/declare/addons"
	"croft.dev/croft/internal/declare/addons/addonstest"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/rules/admissionpolicy"
)

// TestAnnotationsOfWorkloads fails if the catalogue lacks an annotation of the workloads that
// TestWorkloads deploys, which would lead to a warning there.
func TestAnnotationsOfWorkloads(t *testing.T) {
	files, err := filepath.Glob("../../../test/e2e/testdata/workloads/*/*.yaml")
	if err != nil || len(files) < 40 {
		t.Fatalf("there are %d workloads: %v", len(files), err)
	}
	tables := map[bool]map[string]string{true: addons.BuildTable(addons.Pods), false: addons.BuildTable(addons.Edge)}
	data := addons.BuildTable(addons.Data)
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, document := range bytes.Split(content, []byte("\n---")) {
			var o unstructured.Unstructured
			if err := yaml.Unmarshal(document, &o.Object); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			template, _, _ := unstructured.NestedStringMap(o.Object, "spec", "template", "metadata", "annotations")
			own := o.GetAnnotations()
			table := tables[false]
			switch o.GetKind() {
			case "Secret", "ConfigMap", "PersistentVolumeClaim":
				table = data
			case "Pod":
				template = own
			}
			for key := range own {
				switch o.GetKind() {
				case "Ingress", "Service", "Secret", "ConfigMap", "PersistentVolumeClaim", "HTTPRoute", "GRPCRoute", "Gateway":
					if addonstest.FindClass(table, key) == string(addons.Unknown) {
						t.Errorf("%s: %s %s has %s, which is not known", filepath.Base(file), o.GetKind(), o.GetName(), key)
					}
				}
			}
			for key := range template {
				if class := addonstest.FindClass(tables[true], key); class == string(addons.Unknown) {
					t.Errorf("%s: the pods of %s %s have %s, which is not known", filepath.Base(file), o.GetKind(), o.GetName(), key)
				}
			}
		}
	}
}

// TestTypes fails if an expression does not fit the types of the variables before it. The API
// server would refuse such a policy.
func TestTypes(t *testing.T) {
	texts := cel.MapType(cel.StringType, cel.StringType)
	known := map[string]*cel.Type{"annotations": texts, "annotationsBefore": texts, "labels": texts, "labelsBefore": texts, "handedLabels": texts, "handedLabelsBefore": texts}
	for _, policy := range []admissionpolicy.Validating{
		buildPolicy(&estate.Platform{}, "croft-annotations"), buildPolicy(&estate.Platform{}, "croft-unknown-annotations"),
		buildPolicy(&estate.Platform{}, "croft-ingresses"), admissionpolicy.CheckPods(buildPodPart(&estate.Platform{})),
	} {
		env, _ := newEnvironment(t).Extend()
		for _, v := range listVariables(policy) {
			ast, issues := env.Compile(v.Expression)
			if issues.Err() != nil {
				t.Fatalf("%s: variable %s: %v", policy.Name, v.Name, issues.Err())
			}
			is := ast.OutputType()
			if known[v.Name] != nil {
				is = known[v.Name]
			}
			var err error
			if env, err = env.Extend(cel.Variable("variables."+v.Name, is)); err != nil {
				t.Fatal(err)
			}
		}
		for _, r := range policy.Rules {
			for what, expression := range map[string]string{"rule": r.Expression, "message": `"[x] " + ("a template: " + ` + r.Message + `)`} {
				if _, issues := env.Compile(expression); issues.Err() != nil {
					t.Errorf("%s: %s %s: %v", policy.Name, what, r.Name, issues.Err())
				}
			}
		}
	}
}

// TestCatalogue fails if the catalogue contradicts itself or is incomplete.
func TestCatalogue(t *testing.T) {
	seen := map[string]string{}
	for _, a := range addons.All() {
		if a.Name == "" || a.Source == "" || a.Kinds == 0 {
			t.Errorf("%q has no name, no source or no kinds", a.Name)
		}
		for _, prefix := range a.Prefixes {
			if other := seen[prefix]; other != "" {
				t.Errorf("prefix %s is %s's and %s's", prefix, a.Name, other)
			}
			seen[prefix] = a.Name
		}
		names := map[string]bool{}
		for _, n := range a.Names {
			if n.Class != addons.Harmless && n.Class != addons.OneOf && n.Harm == "" {
				t.Errorf("%s: there is no reason why %v are %s", a.Name, n.Names, n.Class)
			}
			for _, name := range n.Names {
				if names[name] {
					t.Errorf("%s: %s is there twice", a.Name, name)
				}
				names[name] = true
			}
		}
	}
	for _, g := range addons.Groups {
		table := addons.BuildTable(g.Kinds)
		for key, code := range table {
			class, _, _ := strings.Cut(code, ":")
			many := strings.HasSuffix(key, ".") || strings.Contains(key, "/.") || strings.HasPrefix(key, "*.")
			if slices.Contains(listing, addons.Class(class)) && many {
				t.Errorf("%s stands for others, whose values are lists: no bound counts them", key)
			}
		}
		for key, class := range table {
			if got := addonstest.FindClass(table, key); got != class && !strings.HasPrefix(key, "*.") {
				t.Errorf("%s is %s, and found as %s", key, class, got)
			}
		}
	}
}

// TestFindClassInRules fails if the rules and addonstest.FindClass look up a key in the
// catalogue differently.
func TestFindClassInRules(t *testing.T) {
	table := addons.BuildTable(addons.Pods)
	all := slices.Sorted(maps.Keys(table))
	for _, key := range slices.Clone(all) {
		name := strings.Trim(strings.Trim(key, "*."), "/")
		all = append(all, name, "new."+name, name+"/x", name+"/x.y.z", name+".c/x", name+".c")
	}
	all = append(all, "note", "build.url.of", "com.example.team", "next-plugin.io", "example.net/x", "co.elastic.logs.c/x", "x.external-dns/hostname")
	set := newEnvironment(t)
	asked := compileExpression(t, set, `variables.annotations.transformList(k, v, [string(k), string(v), string(`+normalizeKey("k")+`)])`)
	class := compileExpression(t, set, `variables.asked.map(a, string(`+findClass()+`))`)
	for _, key := range all {
		if strings.HasPrefix(key, "*.") || strings.Count(key, "/") > 1 || strings.HasSuffix(key, "/") {
			continue
		}
		in := map[string]any{"params": map[string]any{"spec": map[string]any{"domains": []string{}}}, "variables": map[string]any{
			"plain": false, "wildcards": []string{}, "annotations": map[string]string{key: "x"}, "annotationsBefore": map[string]string{}, "catalogue": table,
		}}
		in["variables"].(map[string]any)["asked"] = asked(in)
		got := fmt.Sprint(class(in).(traits.Lister).Get(types.Int(0)).Value())
		if want := addonstest.FindClass(table, key); got != want {
			t.Errorf("%s is %s in the rules, and %s in the catalogue", key, got, want)
		}
	}
}

// compileExpression returns a function that evaluates an expression.
func compileExpression(t *testing.T, env *cel.Env, expression string) func(map[string]any) ref.Val {
	t.Helper()
	ast, issues := env.Compile(expression)
	if issues.Err() != nil {
		t.Fatal(issues.Err())
	}
	program, err := env.Program(ast)
	if err != nil {
		t.Fatal(err)
	}
	return func(in map[string]any) ref.Val {
		t.Helper()
		out, _, err := program.Eval(in)
		if err != nil {
			t.Fatalf("%v: %v", in["variables"].(map[string]any)["annotations"], err)
		}
		return out
	}
}

func newEnvironment(t *testing.T) *cel.Env {
	t.Helper()
	set, err := environment.MustBaseEnvSet(version.MajorMinor(1, 36)).Extend(environment.VersionedOptions{
		IntroducedVersion: version.MajorMinor(1, 0),
		EnvOptions: []cel.EnvOption{
			cel.Variable("object", cel.DynType), cel.Variable("oldObject", cel.DynType), cel.Variable("request", cel.DynType),
			cel.Variable("params", cel.DynType), cel.Variable("variables", cel.DynType), cel.Variable("authorizer", cel.DynType), cel.Variable("namespaceObject", cel.DynType),
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	env, err := set.Env(environment.NewExpressions)
	if err != nil {
		t.Fatal(err)
	}
	return env
}

// listVariables returns a policy's variables, including the variables for its bounds.
func listVariables(policy admissionpolicy.Validating) []admissionpolicy.Variable {
	return slices.Concat(policy.EarlyVariables, []admissionpolicy.Variable{{Name: "comparable", Expression: `request.operation == "UPDATE"`}}, policy.Variables)
}
