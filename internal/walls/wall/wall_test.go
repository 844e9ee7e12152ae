package wall_test

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/declare/manifest"
	"croft.dev/croft/internal/rules/admissionpolicy"
	"croft.dev/croft/internal/rules/attack"
	"croft.dev/croft/internal/walls/wall"
	"croft.dev/croft/internal/walls/wall/identity"
)

func loadEstate(t testing.TB, path string) *estate.Estate {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return parseEstate(t, string(data))
}

func parseEstate(t testing.TB, content string) *estate.Estate {
	t.Helper()
	d, problems := manifest.Parse("croft.yaml", []byte(content))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	e, problems := estate.Build(d)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return e
}

// growing has the cluster-scoped kinds whose number grows with tenants or pools.
var growing = []string{"Namespace", "NodePool", "KWOKNodeClass", "Assign", "ModifySet"}

// TestConstantNumberOfPolicies fails if the objects that exist once in the cluster depend on
// the tenants: admission must not slow down as tenants are added.
func TestConstantNumberOfPolicies(t *testing.T) {
	few := loadEstate(t, "../../../examples/two-tenants.yaml")
	var many strings.Builder
	many.WriteString("platform: {clusterName: demo, tenantDomain: tenants.example.org, admins: [platform-admins], nodeClass: {kwok: {}}}\npools: {a: {}}\ntenants:\n")
	for i := range 1000 {
		fmt.Fprintf(&many, "  t%d: {pool: a}\n", i)
	}
	clusterWide := func(e *estate.Estate, engine v1alpha1.PlacementEngine) map[string]string {
		e.Platform.Placement = engine
		all := map[string]string{}
		for _, o := range wall.Objects(e) {
			if kind := o.GetObjectKind().GroupVersionKind().Kind; o.GetNamespace() == "" && !slices.Contains(growing, kind) {
				data, err := json.Marshal(o)
				if err != nil {
					t.Fatal(err)
				}
				all[kind+" "+o.GetName()] = string(data)
			}
		}
		return all
	}
	for _, engine := range []v1alpha1.PlacementEngine{v1alpha1.PlacementNative, v1alpha1.PlacementGatekeeper} {
		with2, with1000 := clusterWide(few, engine), clusterWide(parseEstate(t, many.String()), engine)
		for name, content := range with1000 {
			if with2[name] != content {
				t.Errorf("%s: %s is not the same with 2 tenants and with 1,000", engine, name)
				break
			}
		}
		if len(with2) != len(with1000) {
			t.Errorf("%s: %d objects stand with 2 tenants, and %d with 1,000", engine, len(with2), len(with1000))
		}
	}
}

// TestNoParameters fails if a policy has or reads a parameter. An API server that has just
// restarted may refuse the requests of such a policy for half a minute.
func TestNoParameters(t *testing.T) {
	for _, file := range []string{"../../cli/testdata/every-field.yaml", "../../cli/testdata/gatekeeper.yaml"} {
		for _, o := range wall.PlatformObjects(&loadEstate(t, file).Platform) {
			data, err := json.Marshal(o)
			if err != nil {
				t.Fatal(err)
			}
			if found := regexp.MustCompile(`paramKind|paramRef|\bparams\.`).Find(data); found != nil {
				t.Errorf("%s %s has %s", o.GetObjectKind().GroupVersionKind().Kind, o.GetName(), found)
			}
		}
	}
}

// TestExceptions fails if a message and the policy's annotation name different fields as the
// exception. `croft verify --explain` and the docs show the annotation.
func TestExceptions(t *testing.T) {
	e := loadEstate(t, "../../cli/testdata/every-field.yaml")
	field := regexp.MustCompile(`by ((?:policy|selfService)\.[A-Za-z]+|networks\b)`)
	exceptions := 0
	for _, o := range wall.PlatformObjects(&e.Platform) {
		policy, ok := o.(*admissionv1.ValidatingAdmissionPolicy)
		if !ok {
			continue
		}
		for _, v := range policy.Spec.Validations {
			for _, asked := range admissionpolicy.ParseRules(v) {
				var want string
				if match := field.FindStringSubmatch(asked.Message); match != nil {
					want = match[1]
					exceptions++
				}
				if got := policy.Annotations[admissionpolicy.ExceptionAnnotation+asked.Rule]; got != want {
					t.Errorf("%s, rule %s: the exception is %q, the message names %q", policy.Name, asked.Rule, got, want)
				}
			}
		}
	}
	if exceptions == 0 {
		t.Error("no message names a field")
	}
}

// TestRulesOnNamespaces fails if a namespace lacks an annotation that policies and templates
// read, or if a policy reads a value that no annotation has. It also fails if a namespace
// lacks the label that constraints select where Gatekeeper is the engine, or has it
// elsewhere.
func TestRulesOnNamespaces(t *testing.T) {
	e := loadEstate(t, "../../cli/testdata/gatekeeper.yaml")
	annotation := regexp.MustCompile(`croft\.dev/rules\.[A-Za-z]+`)
	variable, declared := regexp.MustCompile(`variables\.(rules[A-Z][A-Za-z]*)`), regexp.MustCompile(`"name":"(rules[A-Z][A-Za-z]*)"`)
	var read []string
	for _, o := range wall.PlatformObjects(&e.Platform) {
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
		t.Fatal("no policy reads any rule")
	}
	// An absent annotation means empty or false, so some rules need not be present.
	always := admissionpolicy.BuildAnnotations(v1alpha1.TenantRulesSpec{})
	fields := reflect.TypeFor[v1alpha1.TenantRulesSpec]()
	sizes := []string{v1alpha1.MaxObjectBytesAnnotation, v1alpha1.MaxHelmReleaseBytesAnnotation, v1alpha1.MaxOtherObjectBytesAnnotation}
	for _, key := range read {
		name := strings.TrimPrefix(key, v1alpha1.RulesAnnotationPrefix)
		if !slices.Contains(sizes, key) && !slices.ContainsFunc(reflect.VisibleFields(fields), func(f reflect.StructField) bool {
			field, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			return field == name
		}) {
			t.Errorf("a policy reads %s, and TenantRules have no such field", key)
		}
	}
	read = slices.DeleteFunc(read, func(key string) bool { _, needed := always[key]; return !needed })
	native := e.Platform
	native.Placement = v1alpha1.PlacementNative
	for _, tenant := range e.Tenants {
		for _, o := range filterNamespaces(wall.TenantObjects(&e.Platform, tenant)) {
			for _, key := range read {
				if _, ok := o.GetAnnotations()[key]; !ok {
					t.Errorf("namespace %s has no annotation %s", o.GetName(), key)
				}
			}
			if o.GetLabels()[v1alpha1.PlacementLabel] != string(v1alpha1.PlacementGatekeeper) {
				t.Errorf("no constraint looks at namespace %s: %v", o.GetName(), o.GetLabels())
			}
		}
		for _, o := range filterNamespaces(wall.TenantObjects(&native, tenant)) {
			for _, key := range slices.Concat(read, sizes) {
				if _, ok := o.GetAnnotations()[key]; !ok {
					t.Errorf("namespace %s has no annotation %s", o.GetName(), key)
				}
			}
			if o.GetLabels()[v1alpha1.PlacementLabel] != "" {
				t.Errorf("namespace %s is marked for Gatekeeper without need: %v", o.GetName(), o.GetLabels())
			}
		}
	}
}

func filterNamespaces(objects []client.Object) []client.Object {
	return slices.DeleteFunc(objects, func(o client.Object) bool { return o.GetObjectKind().GroupVersionKind().Kind != "Namespace" })
}

// TestObjectLabels fails if an object lacks the labels of its owner, by which it is found and
// pruned, or a kind, without which it cannot be written.
func TestObjectLabels(t *testing.T) {
	e := loadEstate(t, "../../cli/testdata/every-field.yaml")
	seen := map[string]bool{}
	for _, o := range wall.Objects(e) {
		kind := o.GetObjectKind().GroupVersionKind()
		id := fmt.Sprintf("%s %s/%s", kind.Kind, o.GetNamespace(), o.GetName())
		if kind.Kind == "" || kind.Version == "" {
			t.Errorf("%s has no kind or version", id)
		}
		if seen[id] {
			t.Errorf("%s is there twice", id)
		}
		seen[id] = true
		labels := o.GetLabels()
		if labels[v1alpha1.ManagedByLabel] != v1alpha1.ManagedBy || labels[v1alpha1.WallLabel] == "" {
			t.Errorf("%s is not marked as croft's: %v", id, labels)
		}
		if o.GetNamespace() != "" && labels[v1alpha1.TenantLabel] == "" {
			t.Errorf("%s has no label of its tenant", id)
		}
	}
}

// TestOrder fails if an object precedes its namespace, or if access does not come last.
func TestOrder(t *testing.T) {
	e := loadEstate(t, "../../../examples/two-tenants.yaml")
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

// TestAttacks fails if two attacks share a name, if an attack lacks a summary or an expected
// stopper, or if a mirror has a stopper.
func TestAttacks(t *testing.T) {
	e := loadEstate(t, "../../../examples/two-tenants.yaml")
	seen := map[string]bool{}
	for _, a := range wall.Attacks(&e.Platform, e.Tenants[0], e.Tenants[1]) {
		if seen[a.Name] {
			t.Errorf("there are two attacks called %s", a.Name)
		}
		seen[a.Name] = true
		if a.Summary == "" || a.Wall == "" {
			t.Errorf("%s has no summary or no wall", a.Name)
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
		stoppable := a.StoppedBy.IsRefusal != nil || a.StoppedBy.IsWarning != nil || a.Outcome != nil || a.Flow != nil || a.Pairs != nil
		if a.Kind == attack.Breach && (a.StoppedBy.Name == "" || !stoppable) {
			t.Errorf("%s does not name what stops it", a.Name)
		}
		if a.Kind == attack.Mirror && a.StoppedBy.Name != "" {
			t.Errorf("%s is something that a tenant may do, but has the stopper %s", a.Name, a.StoppedBy.Name)
		}
	}
}

// TestAttacksWithoutDomains fails if the attacks of a tenant without hosts are invalid
// requests. An empty host in a list is invalid, and a refusal for that reason would hide
// whether the wall works.
func TestAttacksWithoutDomains(t *testing.T) {
	e := loadEstate(t, "../../../examples/two-tenants.yaml")
	hostless := *e.Tenants[0]
	hostless.Domains = nil
	for _, a := range wall.Attacks(&e.Platform, &hostless, e.Tenants[1]) {
		if a.Request == nil {
			continue
		}
		for _, o := range append([]client.Object{a.Request.Object}, a.Setup...) {
			written, err := json.Marshal(o)
			if err != nil {
				t.Fatal(err)
			}
			hosts := regexp.MustCompile(`"(hosts|hostnames|dnsNames)":\[[^]]*""`)
			if found := hosts.Find(written); found != nil {
				t.Errorf("%s has an empty host: %s", a.Name, found)
			}
		}
	}
}

// TestPlatformRolesNameKinds fails if a role of admins or auditors grants a kind by a
// wildcard: names in a Platform must not extend these roles to Secrets.
func TestPlatformRolesNameKinds(t *testing.T) {
	e := parseEstate(t, "platform: {clusterName: demo, auditors: [audit], nodeClass: {ref: {group: example.org, kind: NodeTemplate, name: n}}}\n")
	for _, o := range wall.Objects(e) {
		role, ok := o.(*rbacv1.ClusterRole)
		if !ok || !slices.Contains(identity.PlatformRoles, role.Name) {
			continue
		}
		for _, rule := range role.Rules {
			for _, name := range slices.Concat(rule.APIGroups, rule.Resources, rule.Verbs) {
				if strings.Contains(name, "*") || name == "secrets" {
					t.Errorf("%s gives %v", role.Name, rule)
				}
			}
		}
		if role.Name == identity.AuditorRole && !slices.ContainsFunc(role.Rules, func(r rbacv1.PolicyRule) bool { return slices.Equal(r.Resources, []string{"nodetemplates"}) }) {
			t.Error("auditors may not read the platform's node class")
		}
	}
}
