package admission

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
)

// ConstraintsGroup is the API group of Gatekeeper's constraints.
const ConstraintsGroup = "constraints.gatekeeper.sh"

// The API groups of Gatekeeper, in the versions of its release 3.23.
var (
	gatekeeperTemplates   = schema.GroupVersion{Group: "templates.gatekeeper.sh", Version: "v1"}
	gatekeeperConstraints = schema.GroupVersion{Group: ConstraintsGroup, Version: "v1beta1"}
	gatekeeperMutations   = schema.GroupVersion{Group: "mutations.gatekeeper.sh", Version: "v1"}
)

// Constrained is a policy that Gatekeeper holds too: the same CEL, as a
// ConstraintTemplate for all tenants, and a constraint for each, whose parameters
// are what the policy reads of the tenant's rules.
type Constrained struct {
	// Kind is the constraints' kind, and in lower case the template's name.
	Kind string
	// Matches are the kinds of objects, by API group, that the policy looks at.
	Matches map[string][]string
	// Audits says that the policy can judge objects as they stand, too. One that
	// must know what an object was before cannot.
	Audits bool
	Policy Validating
}

// parameter finds what an expression reads of a tenant's rules.
var parameter = regexp.MustCompile(`params\.spec\.([A-Za-z]+)`)

// Template returns the ConstraintTemplate.
func (c Constrained) Template() client.Object {
	var variables, validations []any
	properties := map[string]any{}
	for _, p := range c.parameters(v1alpha1.TenantRulesSpec{}) {
		properties[p.name] = p.schema
	}
	translate := func(expression string) string {
		return parameter.ReplaceAllString(clean(expression), "variables.params.$1")
	}
	for _, v := range c.Policy.Variables {
		variables = append(variables, map[string]any{"name": v.Name, "expression": translate(v.Expression)})
	}
	for _, r := range c.Policy.Rules {
		validations = append(validations, map[string]any{"expression": translate(r.Holds), "messageExpression": translate(r.message())})
	}
	// A deletion has no object to judge, and an audit no operation.
	only := `request.operation != "DELETE"`
	if !c.Audits {
		only = `request.operation in ["CREATE", "UPDATE"]`
	}
	u := object(gatekeeperTemplates.WithKind("ConstraintTemplate"), strings.ToLower(c.Kind), map[string]any{
		"crd": map[string]any{"spec": map[string]any{
			"names": map[string]any{"kind": c.Kind},
			"validation": map[string]any{
				"legacySchema":    false,
				"openAPIV3Schema": map[string]any{"type": "object", "properties": properties},
			},
		}},
		"targets": []any{map[string]any{
			"target": "admission.k8s.gatekeeper.sh",
			"code": []any{map[string]any{"engine": "K8sNativeValidation", "source": map[string]any{
				"failurePolicy": "Fail",
				// croft writes the API server's policies itself.
				"generateVAP":    false,
				"matchCondition": []any{map[string]any{"name": "written", "expression": only}},
				"variables":      variables,
				"validations":    validations,
			}}},
		}},
	})
	u.SetAnnotations(said(c.Policy.Rules))
	return u
}

// Constraint returns one tenant's constraint.
func (c Constrained) Constraint(rules v1alpha1.TenantRulesSpec) client.Object {
	parameters := map[string]any{}
	for _, p := range c.parameters(rules) {
		parameters[p.name] = p.value
	}
	var kinds []any
	for _, group := range slices.Sorted(maps.Keys(c.Matches)) {
		kinds = append(kinds, map[string]any{"apiGroups": []any{group}, "kinds": anyList(c.Matches[group])})
	}
	return object(gatekeeperConstraints.WithKind(c.Kind), gatekeeperName("croft-"+rules.Tenant), map[string]any{
		"enforcementAction": "deny",
		"match": map[string]any{
			"kinds":             kinds,
			"scope":             "Namespaced",
			"namespaces":        anyList(rules.Namespaces),
			"namespaceSelector": ofTenant(rules.Tenant),
		},
		"parameters": parameters,
	})
}

// parameters are those of a tenant's rules that the policy reads.
func (c Constrained) parameters(rules v1alpha1.TenantRulesSpec) []param {
	var expressions []string
	for _, v := range c.Policy.Variables {
		expressions = append(expressions, v.Expression)
	}
	for _, r := range c.Policy.Rules {
		expressions = append(expressions, r.Holds, r.Message)
	}
	read := map[string]bool{}
	for _, match := range parameter.FindAllStringSubmatch(strings.Join(expressions, "\n"), -1) {
		read[match[1]] = true
	}
	return slices.DeleteFunc(parametersOf(rules), func(p param) bool { return !read[p.name] })
}

// param is a field of TenantRules as a parameter.
type param struct {
	name          string
	schema, value any
}

// parametersOf are the fields of a tenant's rules, under their names in JSON.
func parametersOf(rules v1alpha1.TenantRulesSpec) []param {
	var all []param
	v := reflect.ValueOf(rules)
	for i := range v.NumField() {
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		switch field := v.Field(i); field.Kind() {
		case reflect.Slice:
			values := make([]any, field.Len())
			for j := range values {
				values[j] = field.Index(j).String()
			}
			all = append(all, param{name, map[string]any{"type": "array", "items": map[string]any{"type": "string"}}, values})
		case reflect.Int64:
			all = append(all, param{name, map[string]any{"type": "integer"}, field.Int()})
		case reflect.Bool:
			all = append(all, param{name, map[string]any{"type": "boolean"}, field.Bool()})
		default:
			all = append(all, param{name, map[string]any{"type": "string"}, field.String()})
		}
	}
	return all
}

// Mutator is one of Gatekeeper's for a tenant.
type Mutator struct {
	// Kind is Assign or ModifySet.
	Kind string
	// Name is what the mutator does. The tenant's name is put after it and a dot,
	// which no tenant's name has: so no two can meet.
	Name string
	// Group, Version and ObjectKind are what it changes, and Operations when.
	Group, Version, ObjectKind string
	Operations                 []string
	// Location is the path of the field.
	Location string
	// OnlyMissing leaves the field alone where it is there.
	OnlyMissing bool
	// Value is assigned; Values are merged into a list.
	Value  any
	Values []any
}

// Object returns the mutator for a tenant and its namespaces.
func (m Mutator) Object(tenant string, namespaces []string) client.Object {
	parameters := map[string]any{}
	if m.Kind == "ModifySet" {
		parameters["operation"] = "merge"
		parameters["values"] = map[string]any{"fromList": m.Values}
	} else {
		parameters["assign"] = map[string]any{"value": m.Value}
	}
	if m.OnlyMissing {
		parameters["pathTests"] = []any{map[string]any{"subPath": m.Location, "condition": "MustNotExist"}}
	}
	return object(gatekeeperMutations.WithKind(m.Kind), gatekeeperName("croft-"+m.Name+"."+tenant), map[string]any{
		"applyTo": []any{map[string]any{
			"groups": []any{m.Group}, "versions": []any{m.Version}, "kinds": []any{m.ObjectKind}, "operations": anyList(m.Operations),
		}},
		"match": map[string]any{
			"scope":             "Namespaced",
			"namespaces":        anyList(namespaces),
			"namespaceSelector": ofTenant(tenant),
			"labelSelector": map[string]any{"matchExpressions": []any{map[string]any{
				"key": v1alpha1.ProbeLabel, "operator": "NotIn", "values": []any{string(v1alpha1.PlacementNative)},
			}}},
		},
		"location":   m.Location,
		"parameters": parameters,
	})
}

// longestName is the longest that Gatekeeper takes: it writes the names of mutators
// and constraints into labels.
const longestName = 63

// gatekeeperName shortens a name that is too long, and keeps it from meeting
// another that is shortened alike.
func gatekeeperName(name string) string {
	if len(name) <= longestName {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	suffix := "-" + hex.EncodeToString(sum[:4])
	return strings.TrimRight(name[:longestName-len(suffix)], "-.") + suffix
}

// ofTenant selects the namespaces that croft has made a tenant's, and so none that
// a tenant only asks for. They are named besides, since Gatekeeper goes through the
// mutators of all tenants for each pod: it compares names first, and builds
// selectors anew each time.
func ofTenant(name string) map[string]any {
	return map[string]any{"matchLabels": map[string]any{v1alpha1.TenantLabel: name}}
}

func object(kind schema.GroupVersionKind, name string, spec map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	u.SetGroupVersionKind(kind)
	u.SetName(name)
	return u
}

func anyList(values []string) []any {
	all := make([]any, len(values))
	for i, v := range values {
		all[i] = v
	}
	return all
}
