package wall_test

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/attack"
	"croft.dev/croft/internal/estate"
	"croft.dev/croft/internal/wall"
)

func load(t *testing.T, path string) *estate.Estate {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return parse(t, string(data))
}

func parse(t *testing.T, content string) *estate.Estate {
	t.Helper()
	d, problems := estate.Parse("croft.yaml", []byte(content))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	e, problems := estate.Build(d)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return e
}

// TestConstantNumberOfPolicies is the promise that admission does not slow down
// as tenants come: what stands once in the cluster does not depend on them.
func TestConstantNumberOfPolicies(t *testing.T) {
	few := load(t, "../../examples/two-tenants.yaml")
	var many strings.Builder
	many.WriteString("platform: {clusterName: demo, tenantDomain: tenants.example.org, admins: [platform-admins], nodeClass: {kwok: {}}}\npools: {a: {}}\ntenants:\n")
	for i := range 1000 {
		fmt.Fprintf(&many, "  t%d: {pool: a}\n", i)
	}
	clusterWide := func(e *estate.Estate, engine v1alpha1.PlacementEngine) string {
		e.Platform.Placement = engine
		var all []client.Object
		for _, o := range wall.Objects(e) {
			if o.GetNamespace() == "" && o.GetLabels()[v1alpha1.TenantLabel] == "" && o.GetLabels()[v1alpha1.PoolLabel] == "" {
				all = append(all, o)
			}
		}
		data, err := json.Marshal(all)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	for _, engine := range []v1alpha1.PlacementEngine{v1alpha1.PlacementNative, v1alpha1.PlacementGatekeeper} {
		if clusterWide(few, engine) != clusterWide(parse(t, many.String()), engine) {
			t.Errorf("%s: what stands once in the cluster is not the same with 2 tenants and with 1,000", engine)
		}
	}
}

// TestRulesForGatekeeper wants on each namespace whatever the templates read there,
// with the label that the constraints look for; and neither where another engine
// places pods. It fails if a template reads what no annotation can carry.
func TestRulesForGatekeeper(t *testing.T) {
	e := load(t, "../cli/testdata/gatekeeper.yaml")
	annotation := regexp.MustCompile(`croft\.dev/rules\.[A-Za-z]+`)
	variable, declared := regexp.MustCompile(`variables\.(rules[A-Z][A-Za-z]*)`), regexp.MustCompile(`"name":"(rules[A-Z][A-Za-z]*)"`)
	var read []string
	for _, o := range wall.PlatformObjects(&e.Platform) {
		if o.GetObjectKind().GroupVersionKind().Kind != "ConstraintTemplate" {
			continue
		}
		data, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		read = append(read, annotation.FindAllString(string(data), -1)...)
		var has []string
		for _, match := range declared.FindAllStringSubmatch(string(data), -1) {
			has = append(has, match[1])
		}
		for _, match := range variable.FindAllStringSubmatch(string(data), -1) {
			if !slices.Contains(has, match[1]) {
				t.Errorf("%s reads %s, which it does not declare", o.GetName(), match[1])
			}
		}
	}
	if len(read) == 0 {
		t.Fatal("no template reads any rule")
	}
	native := e.Platform
	native.Placement = v1alpha1.PlacementNative
	for _, tenant := range e.Tenants {
		for _, o := range namespacesOf(wall.TenantObjects(&e.Platform, tenant)) {
			for _, key := range read {
				if _, ok := o.GetAnnotations()[key]; !ok {
					t.Errorf("namespace %s does not say %s", o.GetName(), key)
				}
			}
			if o.GetLabels()[v1alpha1.PlacementLabel] != string(v1alpha1.PlacementGatekeeper) {
				t.Errorf("no constraint looks at namespace %s: %v", o.GetName(), o.GetLabels())
			}
		}
		for _, o := range namespacesOf(wall.TenantObjects(&native, tenant)) {
			if len(o.GetAnnotations()) > 0 || o.GetLabels()[v1alpha1.PlacementLabel] != "" {
				t.Errorf("namespace %s is marked for Gatekeeper without need: %v, %v", o.GetName(), o.GetLabels(), o.GetAnnotations())
			}
		}
	}
}

func namespacesOf(objects []client.Object) []client.Object {
	return slices.DeleteFunc(objects, func(o client.Object) bool { return o.GetObjectKind().GroupVersionKind().Kind != "Namespace" })
}

// TestMarks wants every object to say whose it is, so that it can be found and
// pruned, and to have a kind, so that it can be written.
func TestMarks(t *testing.T) {
	e := load(t, "../cli/testdata/every-field.yaml")
	seen := map[string]bool{}
	for _, o := range wall.Objects(e) {
		kind := o.GetObjectKind().GroupVersionKind()
		id := fmt.Sprintf("%s %s/%s", kind.Kind, o.GetNamespace(), o.GetName())
		if kind.Kind == "" || kind.Version == "" {
			t.Errorf("%s has no kind or version", id)
		}
		if seen[id] {
			t.Errorf("%s is wanted twice", id)
		}
		seen[id] = true
		labels := o.GetLabels()
		if labels[v1alpha1.ManagedByLabel] != v1alpha1.ManagedBy || labels[v1alpha1.WallLabel] == "" {
			t.Errorf("%s is not marked as croft's: %v", id, labels)
		}
		if o.GetNamespace() != "" && labels[v1alpha1.TenantLabel] == "" {
			t.Errorf("%s does not say which tenant it is for", id)
		}
	}
}

// TestOrder wants people's access last, and nothing before its namespace.
func TestOrder(t *testing.T) {
	e := load(t, "../../examples/two-tenants.yaml")
	objects := wall.TenantObjects(&e.Platform, e.Tenants[0])
	kinds := make([]string, len(objects))
	for i, o := range objects {
		kinds[i] = o.GetObjectKind().GroupVersionKind().Kind
	}
	if kinds[0] != "Namespace" || kinds[len(kinds)-1] != "RoleBinding" {
		t.Errorf("want the namespace first and access last, got %v", kinds)
	}
	if i := slices.Index(kinds, "RoleBinding"); slices.ContainsFunc(kinds[i:], func(k string) bool { return k != "RoleBinding" }) {
		t.Errorf("something comes after people's access: %v", kinds)
	}
}

// TestAttacks wants each attack to be told apart, to say what it tries, and to
// be stoppable; and each mirror to be stopped by nothing.
func TestAttacks(t *testing.T) {
	e := load(t, "../../examples/two-tenants.yaml")
	seen := map[string]bool{}
	for _, a := range wall.Attacks(&e.Platform, e.Tenants[0], e.Tenants[1]) {
		if seen[a.Name] {
			t.Errorf("there are two attacks called %s", a.Name)
		}
		seen[a.Name] = true
		if a.Summary == "" || a.Wall == "" {
			t.Errorf("%s does not say what it tries, or for which wall", a.Name)
		}
		forms := 0
		for _, set := range []bool{a.Request != nil, a.Sweep != nil, a.Flow != nil, a.Pairs != nil} {
			if set {
				forms++
			}
		}
		if forms != 1 {
			t.Errorf("%s has %d of request, sweep, flow and pairs; it needs exactly one", a.Name, forms)
		}
		stoppable := a.StoppedBy.Refuses != nil || a.StoppedBy.Warns != nil || a.Outcome != nil || a.Flow != nil || a.Pairs != nil
		if a.Kind == attack.Breach && (a.StoppedBy.Name == "" || !stoppable) {
			t.Errorf("%s does not say what stops it", a.Name)
		}
		if a.Kind == attack.Mirror && a.StoppedBy.Name != "" {
			t.Errorf("%s is something that a tenant may do, but is said to be stopped by %s", a.Name, a.StoppedBy.Name)
		}
	}
}
