package rulefile

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"text/template"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/rules/attack"
)

const policyText = `
resources: [{version: v1, resources: [services]}]
variables: [{name: before, expression: '{{template "type" "oldObject"}}'}]
fragments: {type: '{{.}}.spec.type'}
rules: [type]
`

const ruleText = `
summary: Services have a type
reason: others use the ports of nodes
references: [CVE-1]
variables: [{name: now, expression: '{{template "type" "object"}}'}]
expression: variables.now in {{quote .}} || variables.now == variables.before
message: "spec.type: use ClusterIP"
---
object: {apiVersion: v1, kind: Service, metadata: {name: a}, spec: {type: ClusterIP}}
cases:
- {name: the usual type}
- {attack: open-port, goal: open a port, unless: {serviceTypes: NodePort}, set: {spec: {type: NodePort, externalName: web.$(other).svc}}, refused: true}
- {attack: open-port-later, goal: open a port, granted: true, old: {}, set: {spec: {type: NodePort, selector: {a: b}}}, refused: true}
- {mirror: write-service, goal: write a Service}
- {mirror: open-port-as-platform, goal: open a port, groups: ["system:masters"], set: {spec: {type: NodePort}}}
`

var functions = template.FuncMap{"quote": func(s string) string { return `["` + s + `"]` }}

func makeFiles(policy, rule string) fstest.MapFS {
	return fstest.MapFS{
		"croft-services/policy.yaml": &fstest.MapFile{Data: []byte(policy)},
		"croft-services/type.yaml":   &fstest.MapFile{Data: []byte(rule)},
	}
}

func TestBuildPolicy(t *testing.T) {
	policies, err := ReadPolicies(makeFiles(policyText, ruleText), functions)
	if err != nil {
		t.Fatal(err)
	}
	policy, err := policies["croft-services"].Build("ClusterIP")
	if err != nil {
		t.Fatal(err)
	}
	rule := policy.Rules[0]
	if rule.Name != "type" || rule.Message != `"spec.type: use ClusterIP"` ||
		rule.Expression != `variables.now in ["ClusterIP"] || variables.now == variables.before` {
		t.Errorf("the rule is %+v", rule)
	}
	if len(policy.Variables) != 2 || policy.Variables[1].Expression != "object.spec.type" {
		t.Errorf("the variables are %v", policy.Variables)
	}
	if operations := policy.Resources[0].Operations; len(operations) != 2 {
		t.Errorf("the operations are %v, want CREATE and UPDATE", operations)
	}
}

func TestErrorsNameFileAndField(t *testing.T) {
	for name, c := range map[string]struct{ old, new, err string }{
		"an unknown field":         {"summary:", "summarize: x\nsummary:", `croft-services/type.yaml: unknown field "summarize"`},
		"a field that is missing":  {"reason: others use the ports of nodes\n", "", "croft-services/type.yaml: reason is required"},
		"two messages":             {"message:", "messageExpression: a\nmessage:", "type.yaml: message: set either"},
		"a template":               {"{{quote .}}", "{{quot .}}", `function "quot" not defined`},
		"a rule without a file":    {"[type]", "[type, other]", "croft-services/other.yaml"},
		"a file without a rule":    {"[type]", "[]", "croft-services/policy.yaml: rules: list type"},
		"an unknown target":        {"summary:", "appliesTo: x\nsummary:", `type.yaml: appliesTo: "x" is unknown`},
		"an unknown selection":     {"rules:", "selection: x\nrules:", `policy.yaml: selection: "x" is unknown`},
		"a third document":         {"cases:", "\n---\ncases:", "it has 3 documents"},
		"an unknown field of case": {"{mirror: write-service,", "{mirror: write-service, gaol: x,", `type.yaml: unknown field "cases[3].gaol"`},
		"an attack that succeeds":  {"{}, set: {spec: {type: NodePort, selector: {a: b}}}, refused: true", "{}", "cases[2] (open-port-later): the rule must refuse"},
		"no goal":                  {"goal: write a Service", "refused: false", "cases[3] (write-service): goal is required"},
	} {
		files := makeFiles(strings.Replace(policyText, c.old, c.new, 1), strings.Replace(ruleText, c.old, c.new, 1))
		_, err := ReadPolicies(files, functions)
		if err == nil {
			_, err = ReadCases(files)
		}
		if err == nil || !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: the error is %v, want %s", name, err, c.err)
		}
	}
}

func TestBuildAttacks(t *testing.T) {
	cases, err := ReadCases(makeFiles(policyText, ruleText))
	if err != nil {
		t.Fatal(err)
	}
	build := func(types ...corev1.ServiceType) map[string]attack.Attack {
		list, err := BuildAttacks(cases, Scene{Words: map[string]string{"own": "shop", "other": "bank"}}, v1alpha1.TenantRulesSpec{PolicySettings: v1alpha1.PolicySettings{ServiceTypes: types}})
		if err != nil {
			t.Fatal(err)
		}
		all := map[string]attack.Attack{}
		for _, a := range list {
			all[a.Name] = a
		}
		return all
	}
	all := build()
	if names := slices.Sorted(maps.Keys(all)); len(names) != 4 {
		t.Fatalf("the attacks are %v", names)
	}
	if names := slices.Sorted(maps.Keys(build(corev1.ServiceTypeNodePort))); slices.Contains(names, "open-port") {
		t.Errorf("the attacks on a tenant that may open ports are %v", names)
	}
	open := all["open-port"]
	service := open.Request.Object.(*corev1.Service)
	if open.Kind != attack.Breach || open.StoppedBy.Rule != "type" || open.Harm != "others use the ports of nodes" ||
		service.Name != "croft-open-port" || service.Namespace != "shop" || service.Spec.ExternalName != "web.bank.svc" {
		t.Errorf("the attack is %+v with %+v", open, service)
	}
	later := all["open-port-later"]
	live := service.DeepCopy()
	live.Spec = corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP, ClusterIP: "10.0.0.1"}
	if err := later.Request.Change(live); err != nil {
		t.Fatal(err)
	}
	if live.Spec.Type != corev1.ServiceTypeNodePort || live.Spec.ClusterIP != "10.0.0.1" || live.Spec.Selector["a"] != "b" {
		t.Errorf("the changed object is %+v", live.Spec)
	}
	// The permission and its binding come before the object that is changed.
	if len(later.Setup) != 3 || later.Request.Verb != attack.Update {
		t.Errorf("the attack prepares %d objects and sends %s", len(later.Setup), later.Request.Verb)
	}
	if mirror := all["open-port-as-platform"]; mirror.Kind != attack.Mirror || !mirror.OutsideTenants {
		t.Errorf("the mirror is %+v", mirror)
	}
}

func TestBuildPods(t *testing.T) {
	for appliesTo, want := range map[string][3]int{"": {1, 0, 0}, "pods": {0, 1, 0}, "templates": {0, 0, 1}} {
		policies, err := ReadPolicies(makeFiles(policyText, "appliesTo: "+appliesTo+ruleText), functions)
		if err != nil {
			t.Fatal(err)
		}
		pods, err := policies["croft-services"].BuildPods("ClusterIP")
		if err != nil {
			t.Fatal(err)
		}
		if got := [3]int{len(pods.Rules), len(pods.PodRules), len(pods.TemplateRules)}; got != want || len(pods.Variables) != 2 {
			t.Errorf("%q: %v rules for both, pods and templates, want %v; variables %v", appliesTo, got, want, pods.Variables)
		}
	}
}

// TestBuildObjects expects patches of list items, and words in keys, over a base of the wall.
func TestBuildObjects(t *testing.T) {
	base := &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "x"}, {Name: "b", Image: "y"}}}}
	cases, err := ParseCases([]byte(`
policy: croft-pods
cases:
- {rule: r, attack: take, goal: take, base: pod, refused: true, set: {metadata: {labels: {$(own)/x: z}}, spec: {containers: {$each: {image: z, tty: true}}}}}
- {rule: r, attack: lack, goal: lack, base: none, refused: true}
`))
	if err != nil {
		t.Fatal(err)
	}
	scene := Scene{Words: map[string]string{"own": "shop"}, Bases: map[string]client.Object{"pod": base, "none": nil}}
	attacks, err := BuildAttacks(map[string]Cases{"file": cases}, scene, v1alpha1.TenantRulesSpec{})
	if err != nil || len(attacks) != 1 {
		t.Fatalf("%d attacks: %v", len(attacks), err)
	}
	object, _, err := cases.BuildObjects(cases.Cases[0], scene)
	if err != nil {
		t.Fatal(err)
	}
	var pod corev1.Pod
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &pod); err != nil {
		t.Fatal(err)
	}
	containers := pod.Spec.Containers
	if len(containers) != 2 || containers[1].Name != "b" || containers[1].Image != "z" || !containers[0].TTY || pod.Labels["shop/x"] != "z" {
		t.Errorf("the object is %v", object)
	}
	if base.Spec.Containers[0].Image != "x" {
		t.Error("the base has changed")
	}
}

// TestChangeKeepsDefaults fails if a change of a container removes the fields that the API server
// has set in the live pod.
func TestChangeKeepsDefaults(t *testing.T) {
	cases, err := ParseCases([]byte(`
policy: croft-pods
object: {apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [{name: c, image: x}]}}
cases:
- {rule: r, attack: change, goal: change, old: {}, refused: true, set: {spec: {containers: [{name: c, image: z}]}}}
`))
	if err != nil {
		t.Fatal(err)
	}
	attacks, err := BuildAttacks(map[string]Cases{"file": cases}, Scene{}, v1alpha1.TenantRulesSpec{})
	if err != nil || len(attacks) != 1 {
		t.Fatalf("%d attacks: %v", len(attacks), err)
	}
	live := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "x", ImagePullPolicy: corev1.PullAlways}}}}
	if err := attacks[0].Request.Change(live); err != nil {
		t.Fatal(err)
	}
	if c := live.Spec.Containers[0]; c.Image != "z" || c.ImagePullPolicy != corev1.PullAlways {
		t.Errorf("the container is %+v", c)
	}
}
