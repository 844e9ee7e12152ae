package admissionpolicy

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
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

// Constrained is a policy that Gatekeeper enforces too: the same CEL, as a ConstraintTemplate
// and one constraint for all tenants. The policy reads the tenant's rules from annotations of
// its namespaces.
//
// Users of Gatekeeper would expect a constraint for each tenant, with the rules as its
// parameters. But for each constraint of every kind, Gatekeeper parses an object again before
// it matches the two (Matcher.Match in its pkg/target): with a thousand tenants, that took
// nine tenths of a pod's creation time.
type Constrained struct {
	// Kind is the kind of the constraint. In lower case it is the template's name.
	Kind string
	// MatchedKinds has the kinds of objects, by API group, that the policy matches.
	MatchedKinds map[string][]string
	// CanAudit is set if the policy can also evaluate stored objects. A policy that compares
	// with the old object cannot.
	CanAudit bool
	Policy   Validating
}

const (
	// namespaceUnknown is true in Gatekeeper before 3.22, which does not pass namespaces to
	// CEL. With these versions only the API server enforces the rules: without this exception
	// every request would be refused. Later versions refuse a request themselves if they
	// cannot find the namespace whose labels they match.
	namespaceUnknown = `namespaceObject == null`
	// gatekeeperRules is the variable for the namespace's annotations.
	gatekeeperRules      = "rules"
	namespaceAnnotations = `has(namespaceObject.metadata.annotations) ? namespaceObject.metadata.annotations : {}`
)

// Template returns the ConstraintTemplate.
func (c Constrained) Template() client.Object {
	var validations []any
	variables := []any{makeVariable(gatekeeperRules, namespaceAnnotations)}
	expressions := listExpressions(c.Policy.listVariables(), c.Policy.ListRules())
	for _, r := range findReadRules(listRuleFields(v1alpha1.TenantRulesSpec{}), expressions...) {
		variables = append(variables, makeVariable(formatVariableName(r.field), r.buildLenientRead()))
	}
	translate := func(expression string) string { return readFromVariables(removeIndentation(expression)) }
	for _, v := range c.Policy.listVariables() {
		variables = append(variables, makeVariable(v.Name, translate(v.Expression)))
	}
	for _, r := range c.Policy.ListRules() {
		validations = append(validations, map[string]any{
			"expression":        fmt.Sprintf("%s || (%s)", namespaceUnknown, translate(r.Expression)),
			"messageExpression": translate(r.buildMessageExpression()),
		})
	}
	// A deletion has no object to evaluate, and an audit has no operation.
	only := `request.operation != "DELETE"`
	if !c.CanAudit {
		only = `request.operation in ["CREATE", "UPDATE"]`
	}
	u := newObject(gatekeeperTemplates.WithKind("ConstraintTemplate"), strings.ToLower(c.Kind), map[string]any{
		"crd": map[string]any{"spec": map[string]any{"names": map[string]any{"kind": c.Kind}}},
		"targets": []any{map[string]any{
			"target": "admission.k8s.gatekeeper.sh",
			"code": []any{map[string]any{"engine": "K8sNativeValidation", "source": map[string]any{
				"failurePolicy": "Fail",
				// croft itself writes the API server's policies.
				"generateVAP":    false,
				"matchCondition": []any{map[string]any{"name": "written", "expression": only}},
				"variables":      variables,
				"validations":    validations,
			}}},
		}},
	})
	u.SetAnnotations(describeRules(c.Policy.ListRules()))
	return u
}

func makeVariable(name, expression string) map[string]any {
	return map[string]any{"name": name, "expression": expression}
}

// constraintName is the name of the only constraint of each kind.
const constraintName = "croft"

// Constraint returns the constraint for the namespaces of all tenants.
func (c Constrained) Constraint() client.Object {
	var kinds []any
	for _, group := range slices.Sorted(maps.Keys(c.MatchedKinds)) {
		kinds = append(kinds, map[string]any{"apiGroups": []any{group}, "kinds": toAnyList(c.MatchedKinds[group])})
	}
	return newObject(gatekeeperConstraints.WithKind(c.Kind), constraintName, map[string]any{
		"enforcementAction": "deny",
		"match": map[string]any{
			"kinds": kinds,
			"scope": "Namespaced",
			"namespaceSelector": map[string]any{"matchLabels": map[string]any{
				v1alpha1.PlacementLabel: string(v1alpha1.PlacementGatekeeper),
			}},
		},
	})
}

// MarkForGatekeeper adds the label to a namespace that the constraints select.
func MarkForGatekeeper(namespace client.Object) {
	addLabel(namespace, v1alpha1.PlacementLabel, string(v1alpha1.PlacementGatekeeper))
}

// addLabel adds a label, and leaves the map of labels unchanged, which other objects may share.
func addLabel(o client.Object, key, value string) {
	labels := map[string]string{key: value}
	maps.Copy(labels, o.GetLabels())
	o.SetLabels(labels)
}

// Mutator is a Gatekeeper mutator for a tenant.
type Mutator struct {
	// Kind is Assign or ModifySet.
	Kind string
	// Name is the purpose of the mutator. In the object's name it is followed by a dot and
	// the tenant's name. No tenant's name has a dot, so the names are unique.
	Name string
	// Group, Version and ObjectKind are the kind to mutate, and Operations the operations.
	Group, Version, ObjectKind string
	Operations                 []string
	// Location is the path of the field.
	Location string
	// OnlyMissing leaves the field unchanged if it is set.
	OnlyMissing bool
	// RequiredPath is a path that must exist, so that Gatekeeper does not create the field together
	// with its parents. Empty requires no path.
	RequiredPath string
	// Value is assigned. Values are merged into a list.
	Value  any
	Values []any
}

// Object returns the mutator for a tenant and its namespaces. It also matches the namespaces
// by name, since Gatekeeper evaluates the mutators of all tenants for each pod: it compares
// names first, and parses selectors each time.
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
	if m.RequiredPath != "" {
		parameters["pathTests"] = []any{map[string]any{"subPath": m.RequiredPath, "condition": "MustExist"}}
	}
	return newObject(gatekeeperMutations.WithKind(m.Kind), shortenName("croft-"+m.Name+"."+tenant), map[string]any{
		"applyTo": []any{map[string]any{
			"groups": []any{m.Group}, "versions": []any{m.Version}, "kinds": []any{m.ObjectKind},
			"operations": toAnyList(m.Operations),
		}},
		"match": map[string]any{
			"scope":             "Namespaced",
			"namespaces":        toAnyList(namespaces),
			"namespaceSelector": selectTenant(tenant),
			"labelSelector": map[string]any{"matchExpressions": []any{map[string]any{
				"key": v1alpha1.ProbeLabel, "operator": "NotIn", "values": []any{string(v1alpha1.PlacementNative)},
			}}},
		},
		"location":   m.Location,
		"parameters": parameters,
	})
}

// longestName is the maximum length in Gatekeeper, which writes the names of mutators and
// constraints into labels.
const longestName = 63

// shortenName shortens a name that is too long. A hash keeps shortened names distinct.
func shortenName(name string) string {
	if len(name) <= longestName {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	suffix := "-" + hex.EncodeToString(sum[:4])
	return strings.TrimRight(name[:longestName-len(suffix)], "-.") + suffix
}

// selectTenant selects the namespaces that croft has accepted as the tenant's.
func selectTenant(name string) map[string]any {
	return map[string]any{"matchLabels": map[string]any{v1alpha1.TenantLabel: name}}
}

func newObject(kind schema.GroupVersionKind, name string, spec map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	u.SetGroupVersionKind(kind)
	u.SetName(name)
	return u
}

func toAnyList(values []string) []any {
	all := make([]any, len(values))
	for i, v := range values {
		all[i] = v
	}
	return all
}
