package admissionpolicy_test

import (
	"errors"
	"math"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/cel-go/cel"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/rules/admissionpolicy"
)

// TestAnnotations fails if a rule is missing or wrong in a namespace's annotations.
func TestAnnotations(t *testing.T) {
	namespace := &corev1.Namespace{}
	namespace.Annotations = map[string]string{"kept": "yes", v1alpha1.RulesAnnotationPrefix + "egress": "Open"}
	admissionpolicy.AnnotateNamespace(namespace, v1alpha1.TenantRulesSpec{
		Tenant: "shop", Pools: []string{"small", "large"}, Egress: v1alpha1.EgressRestricted,
		PolicySettings: v1alpha1.PolicySettings{
			StorageClasses: []string{""}, CSIDrivers: []string{}, RuntimeClasses: []string{"kata", "a,b%"},
			MaxTerminationGracePeriodSeconds: ptr.To[int64](600), DoNotDisrupt: ptr.To(true), MaxVolumeSize: ptr.To(resource.MustParse("1024Gi")),
		},
	})
	for key, want := range map[string]string{
		"kept": "yes", "croft.dev/rules.tenant": "shop", "croft.dev/rules.pools": "small,large", "croft.dev/rules.egress": "Restricted",
		"croft.dev/rules.runtimeClasses": "kata,a%2Cb%25", "croft.dev/rules.storageClasses": ",", "croft.dev/rules.registries": "",
		"croft.dev/rules.maxTerminationGracePeriodSeconds": "600", "croft.dev/rules.doNotDisrupt": "true", "croft.dev/rules.maxVolumeSize": "1Ti",
	} {
		if got, ok := namespace.Annotations[key]; !ok || got != want {
			t.Errorf("%s is %q, want %q", key, got, want)
		}
	}
	for _, key := range []string{"croft.dev/rules.csiDrivers", "croft.dev/rules.domains", "croft.dev/rules.tokenSecrets"} {
		if got, ok := namespace.Annotations[key]; ok {
			t.Errorf("%s is %q, want none: it allows nothing", key, got)
		}
	}
}

// TestOnPool fails if FindNamespacesOnPool leaves out a namespace whose pods may run on the pool, or
// returns a namespace that is being deleted or that uses other pools.
func TestOnPool(t *testing.T) {
	now := metav1.Now()
	var namespaces []corev1.Namespace
	for _, n := range []struct {
		name, pools string
		deleted     *metav1.Time
	}{
		{name: "only", pools: "apps"}, {name: "second", pools: "jobs,apps"}, {name: "going", pools: "apps", deleted: &now},
		{name: "elsewhere", pools: "jobs"}, {name: "longer", pools: "apps-2"}, {name: "none"},
	} {
		namespace := corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: n.name, DeletionTimestamp: n.deleted}}
		if n.pools != "" {
			namespace.Annotations = map[string]string{v1alpha1.RulesAnnotationPrefix + "pools": n.pools}
		}
		namespaces = append(namespaces, namespace)
	}
	var names []string
	for _, n := range admissionpolicy.FindNamespacesOnPool("apps", namespaces) {
		names = append(names, n.Name)
	}
	if want := []string{"only", "second"}; !slices.Equal(names, want) {
		t.Errorf("%q, want %q", names, want)
	}
	if len(namespaces) != 6 || namespaces[2].Name != "going" {
		t.Error("it changes the list that it reads")
	}
}

// TestReadsNamespace fails if an expression still reads a parameter, if no variable reads a
// rule, or if existing objects could not be changed in a namespace without rules.
func TestReadsNamespace(t *testing.T) {
	rule := admissionpolicy.Rule{Name: "r", Expression: `object.spec.type in params.spec.serviceTypes`, Message: `"not for " + params.spec.tenant`}
	for name, c := range map[string]struct {
		operations []admissionv1.OperationType
		resource   string
		lenient    bool
	}{
		"creation":                 {[]admissionv1.OperationType{admissionv1.Create}, "services", false},
		"creation and updates":     {[]admissionv1.OperationType{admissionv1.Create, admissionv1.Update}, "services", true},
		"deletion":                 {[]admissionv1.OperationType{admissionv1.Delete}, "services", true},
		"updates of a subresource": {[]admissionv1.OperationType{admissionv1.Update}, "pods/resize", false},
		"nothing else is asked":    {[]admissionv1.OperationType{admissionv1.Connect}, "services", false},
	} {
		objects := admissionpolicy.Validating{
			Name: "p", Resources: []admissionpolicy.Resource{{Version: "v1", Resources: []string{c.resource}, Operations: c.operations}},
			Variables: []admissionpolicy.Variable{{Name: "own", Expression: `params.spec.namespaces`}}, Rules: []admissionpolicy.Rule{rule},
		}.Objects()
		if len(objects) != 2 {
			t.Fatalf("%s: %d objects, want a policy and a binding", name, len(objects))
		}
		policy := objects[0].(*admissionv1.ValidatingAdmissionPolicy)
		var names []string
		for _, v := range policy.Spec.Variables {
			names = append(names, v.Name)
		}
		want := []string{"rulesNamespaces", "rulesServiceTypes", "own"}
		if c.lenient {
			want = slices.Insert(want, 0, "unruled")
		}
		if !slices.Equal(names, want) {
			t.Errorf("%s: the variables are %v, want %v", name, names, want)
		}
		expression := `object.spec.type in variables.rulesServiceTypes`
		if c.lenient {
			expression = `(` + expression + `) || variables.unruled`
		}
		if got := policy.Spec.Validations[0].Expression; got != expression {
			t.Errorf("%s: asks %s, want %s", name, got, expression)
		}
		if got := policy.Spec.Validations[0].MessageExpression; strings.Contains(got, "params") || !strings.Contains(got, `namespaceObject.metadata.annotations["croft.dev/rules.tenant"]`) {
			t.Errorf("%s: the message is %s", name, got)
		}
	}
}

// TestRulesFit fails if the rules of a tenant can exceed the maximum size of a namespace's
// annotations. In that case lists need lower bounds.
func TestRulesFit(t *testing.T) {
	// The values come from Tenants, whose lists have no value twice.
	declared := readSpecSchema(t, "tenants").Properties["policy"].Properties
	const (
		most = 256 << 10
		// others is the space for namespaces' other annotations, for characters of more than one byte, and for
		// commas in names, which take three bytes.
		others = 31 << 10
	)
	sum := 0
	for name, field := range readSpecSchema(t, "tenantrules").Properties {
		if setting, ok := declared[name]; ok {
			field = setting
		}
		longest, err := countLongest(&field)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		sum += len(v1alpha1.RulesAnnotationPrefix+name) + longest
	}
	if sum > most-others || sum == 0 {
		t.Errorf("a tenant's rules take up to %d bytes as annotations, %d more than a namespace has for them", sum, sum-(most-others))
	}
	t.Logf("%d of %d bytes", sum, most-others)
}

// readSpecSchema returns the schema of the spec of one of croft's kinds.
func readSpecSchema(t *testing.T, kind string) apiextensionsv1.JSONSchemaProps {
	t.Helper()
	data, err := os.ReadFile("../../../api/crds/croft.dev_" + kind + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal(data, &crd); err != nil {
		t.Fatal(err)
	}
	return crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
}

// countLongest returns the length of the longest annotation for a field of TenantRules.
func countLongest(field *apiextensionsv1.JSONSchemaProps) (int, error) {
	switch {
	case field.Type == "boolean":
		return len("true"), nil // false is not written
	case field.Type == "integer":
		return len(strconv.Itoa(math.MaxInt64)), nil
	case field.XIntOrString:
		return len("-9223372036854775808m"), nil // a quantity
	case field.Type != "array":
		return countText(field)
	case field.MaxItems == nil:
		return 0, errors.New("it has no maxItems")
	}
	items := int(*field.MaxItems)
	lengths := make([]int, 0, len(field.Items.Schema.Enum))
	if values := field.Items.Schema.Enum; values != nil && ptr.Deref(field.XListType, "") == "set" {
		for _, v := range values {
			lengths = append(lengths, len(v.Raw)-len(`""`))
		}
		slices.SortFunc(lengths, func(a, b int) int { return b - a })
		lengths = lengths[:min(items, len(lengths))]
	} else {
		longest, err := countText(field.Items.Schema)
		if err != nil {
			return 0, err
		}
		lengths = slices.Repeat([]int{longest}, items)
	}
	sum := len(lengths) - 1 // commas
	for _, length := range lengths {
		sum += length
	}
	return sum, nil
}

func countText(text *apiextensionsv1.JSONSchemaProps) (int, error) {
	longest := 0
	for _, v := range text.Enum {
		longest = max(longest, len(v.Raw)-len(`""`))
	}
	switch {
	case text.Enum != nil:
		return longest, nil
	case text.MaxLength == nil:
		return 0, errors.New("it has no maxLength")
	}
	return int(*text.MaxLength), nil
}

// TestReadBack fails if the API server reads another value than was written, or if a missing
// rule allows anything.
func TestReadBack(t *testing.T) {
	read := func(expression string, annotations map[string]string) any {
		t.Helper()
		policy := admissionpolicy.Validating{
			Name: "p", Resources: []admissionpolicy.Resource{{Version: "v1", Resources: []string{"services"}, Operations: []admissionv1.OperationType{admissionv1.Create}}},
			Variables: []admissionpolicy.Variable{{Name: "it", Expression: expression}},
			Rules:     []admissionpolicy.Rule{{Name: "r", Expression: `variables.it == variables.it`, Message: `"none"`}},
		}.Objects()[0].(*admissionv1.ValidatingAdmissionPolicy)
		env, err := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()).StoredExpressionsEnv().Extend(cel.Variable("namespaceObject", cel.DynType))
		if err != nil {
			t.Fatal(err)
		}
		ast, issues := env.Compile(policy.Spec.Variables[0].Expression)
		if issues.Err() != nil {
			t.Fatal(issues.Err())
		}
		program, err := env.Program(ast)
		if err != nil {
			t.Fatal(err)
		}
		out, _, err := program.Eval(map[string]any{"namespaceObject": map[string]any{"metadata": map[string]any{"annotations": annotations}}})
		if err != nil {
			return err
		}
		if list, err := out.ConvertToNative(reflect.TypeFor[[]string]()); err == nil {
			return list
		}
		return out.Value()
	}
	for _, want := range [][]string{{}, {"", ""}, {"gp3"}, {"", "gp3"}, {"gp3", ""}, {"a", "b", "c"}, {"cn=devs,ou=groups", "%2C", "100%", "%25"}} {
		got := read("params.spec.storageClasses", admissionpolicy.BuildAnnotations(v1alpha1.TenantRulesSpec{PolicySettings: v1alpha1.PolicySettings{StorageClasses: want}}))
		if list, ok := got.([]string); !ok || !slices.Equal(list, want) {
			t.Errorf("%q comes back as %v", want, got)
		}
	}
	// Earlier releases wrote empty lists, and false.
	if got := read("params.spec.storageClasses", map[string]string{"croft.dev/rules.storageClasses": ""}); len(got.([]string)) != 0 {
		t.Errorf("an empty list is read as %v", got)
	}
	for _, of := range []map[string]string{{}, {"croft.dev/rules.doNotDisrupt": "false"}} {
		if got := read("params.spec.doNotDisrupt", of); got != false {
			t.Errorf("%v is read as %v", of, got)
		}
	}
	if got := read("params.spec.doNotDisrupt", admissionpolicy.BuildAnnotations(v1alpha1.TenantRulesSpec{PolicySettings: v1alpha1.PolicySettings{DoNotDisrupt: ptr.To(true)}})); got != true {
		t.Errorf("true is read as %v", got)
	}
	for _, field := range []string{"tenant", "pools", "maxVolumeSize", "maxTerminationGracePeriodSeconds"} {
		if got, failed := read("params.spec."+field, nil).(error); !failed {
			t.Errorf("%s, which is missing, is read as %v", field, got)
		}
	}
}
