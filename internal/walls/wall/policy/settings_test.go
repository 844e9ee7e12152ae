package policy_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apiserver/pkg/authentication/user"
	"sigs.k8s.io/yaml"

	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/declare/manifest"
	"croft.dev/croft/internal/rules/evaluator"
	"croft.dev/croft/internal/walls/wall"
)

// TestPodSettings expects the fields that croft sets on new pods, by the tenant's policy.
func TestPodSettings(t *testing.T) {
	var compiled *evaluator.Evaluator
	for name, c := range map[string]struct{ policy, pod, path, want string }{
		"no runtime class":                      {"", "", "runtimeClassName", "null"},
		"the forced runtime class":              {"runtimeClass: {force: kata}", "", "runtimeClassName", "kata"},
		"the default runtime class":             {"runtimeClasses: [gvisor, kata], runtimeClass: {default: gvisor}", "", "runtimeClassName", "gvisor"},
		"another runtime class than by default": {"runtimeClasses: [gvisor, kata], runtimeClass: {default: gvisor}", "runtimeClassName: kata", "runtimeClassName", "kata"},
		"no runtime class in a trial":           {"runtimeClass: {force: kata}, trial: [runtimeClass]", "", "runtimeClassName", "null"},

		"no priority class":                      {"priorityClasses: [batch]", "", "priorityClassName", "null"},
		"the default priority class":             {"priorityClasses: [batch, low], priorityClass: {default: batch}", "", "priorityClassName", "batch"},
		"another priority class than by default": {"priorityClasses: [batch, low], priorityClass: {default: batch}", "priorityClassName: low", "priorityClassName", "low"},
		// The API server computes both from the class.
		"no priority with a default class":                    {"priorityClasses: [batch], priorityClass: {default: batch}", "", "priority", "null"},
		"no preemption policy with a default class":           {"priorityClasses: [batch], priorityClass: {default: batch}", "", "preemptionPolicy", "null"},
		"the priority of another class than by default":       {"priorityClasses: [batch, low], priorityClass: {default: batch}", "priorityClassName: low, priority: 5", "priority", "5"},
		"the priority without a default class":                {"seccomp: RuntimeDefault", "", "priority", "0"},
		"a default priority class, next to other settings":    {"priorityClasses: [batch], priorityClass: {default: batch}, hostUsers: Forbidden", "", "priorityClassName", "batch"},
		"another setting, next to the default priority class": {"priorityClasses: [batch], priorityClass: {default: batch}, hostUsers: Forbidden", "", "hostUsers", "false"},

		"no seccomp profile":         {"seccomp: Any", "", "securityContext", "{}"},
		"the seccomp profile":        {"seccomp: RuntimeDefault", "", "securityContext", "{seccompProfile: {type: RuntimeDefault}}"},
		"a seccomp profile of a pod": {"seccomp: RuntimeDefault", "securityContext: {seccompProfile: {type: Localhost, localhostProfile: a}}", "securityContext", "{seccompProfile: {type: Localhost, localhostProfile: a}}"},
		"no profile on Windows":      {"seccomp: RuntimeDefault", "os: {name: windows}", "securityContext", "{}"},

		"any users":                                {"hostUsers: Allowed", "", "hostUsers", "null"},
		"no users of the node":                     {"hostUsers: Forbidden", "", "hostUsers", "false"},
		"users of the node, which are refused":     {"hostUsers: Forbidden", "hostUsers: true", "hostUsers", "true"},
		"any users in a trial":                     {"hostUsers: Forbidden, trial: [hostUsers]", "", "hostUsers", "null"},
		"any users on Windows":                     {"hostUsers: Forbidden", "os: {name: windows}", "hostUsers", "null"},
		"any users with the node's network":        {"hostUsers: Forbidden", "hostNetwork: true", "hostUsers", "null"},
		"any users with the node's processes":      {"hostUsers: Forbidden", "hostPID: true", "hostUsers", "null"},
		"any users with the node's IPC":            {"hostUsers: Forbidden", "hostIPC: true", "hostUsers", "null"},
		"no users of the node without its network": {"hostUsers: Forbidden", "hostNetwork: false", "hostUsers", "false"},
	} {
		declared := `{platform: {clusterName: test, nodeClass: {kwok: {}}}, pools: {jobs: {}},
			tenants: {shop: {pool: jobs, policy: {` + c.policy + `}}}}`
		d, problems := manifest.Parse("croft.yaml", []byte(strings.ReplaceAll(declared, "\t", "")))
		e, more := estate.Build(d)
		if err := append(problems, more...).Err(); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var err error
		if compiled == nil {
			compiled, err = evaluator.NewLazy(wall.Objects(e))
		} else {
			compiled, err = compiled.WithObjects(wall.Objects(e))
		}
		if err != nil {
			t.Fatal(err)
		}
		answer, err := compiled.Evaluate(t.Context(), evaluator.Request{
			User: &user.DefaultInfo{Name: "ann", Groups: []string{user.AllAuthenticated}}, Verb: "create", Authorized: true,
			Resource: schema.GroupVersionResource{Version: "v1", Resource: "pods"}, Namespace: "shop", Name: "a",
			Object: &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"namespace": "shop", "name": "a"},
				"spec": parseYAML(t, "{containers: [{name: c, image: i}], "+c.pod+"}"),
			}},
		})
		if err != nil {
			t.Fatal(err)
		}
		got, _, err := unstructured.NestedFieldNoCopy(answer.Object.Object, "spec", c.path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(parseYAML(t, c.want), got); diff != "" {
			t.Errorf("%s: %s (-want +got):\n%s", name, c.path, diff)
		}
	}
}

// parseYAML parses a value as an API server would: integers stay integers.
func parseYAML(t *testing.T, text string) any {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var value any
	if err := utiljson.Unmarshal(data, &value); err != nil {
		t.Fatal(err)
	}
	return value
}
