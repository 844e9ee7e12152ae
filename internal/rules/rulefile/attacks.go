package rulefile

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	jsonpatch "github.com/evanphx/json-patch/v5"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/scheme"
	"croft.dev/croft/internal/rules/attack"
)

// BuildAttacks returns the attacks and mirrors of all cases, for a tenant with the given rules.
func BuildAttacks(all map[string]Cases, s Scene, rules v1alpha1.TenantRulesSpec) ([]attack.Attack, error) {
	parameters, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&rules)
	if err != nil {
		return nil, err
	}
	// The conversion leaves out empty fields with omitempty.
	for _, field := range reflect.VisibleFields(reflect.TypeFor[v1alpha1.TenantRulesSpec]()) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if _, ok := parameters[name]; !ok {
			parameters[name] = ""
		}
	}
	var attacks []attack.Attack
	for _, file := range slices.Sorted(maps.Keys(all)) {
		cases := all[file]
		for _, c := range cases.Cases {
			concerned, err := c.concerns(parameters)
			if err != nil {
				return nil, fmt.Errorf("%s: %s: %w", file, c.Name, err)
			}
			if c.Attack == "" && c.Mirror == "" || !concerned || c.lacksWord(s) {
				continue
			}
			a, err := cases.buildAttack(c, s)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
			attacks = append(attacks, a)
		}
	}
	return attacks, nil
}

// lacksWord reports whether a case has a word or a base without a value.
func (c *Case) lacksWord(s Scene) bool {
	if base, known := s.Bases[c.Base]; known && base == nil {
		return true
	}
	content, err := json.Marshal([]any{c.Object, c.Set, c.Old})
	for word, value := range s.Words {
		if err == nil && value == "" && bytes.Contains(content, []byte("$("+word+")")) {
			return true
		}
	}
	return false
}

// concerns reports whether a tenant's rules match Only and Unless.
func (c *Case) concerns(parameters map[string]any) (bool, error) {
	matches := true
	for _, limit := range []struct {
		values map[string]any
		expect bool
	}{{c.Only, true}, {c.Unless, false}} {
		for name, value := range limit.values {
			parameter, known := parameters[name]
			if !known {
				return false, fmt.Errorf("TenantRules have no field %s", name)
			}
			matches = matches && hasValue(parameter, value) == limit.expect
		}
	}
	return matches, nil
}

// hasValue reports whether a parameter, or its list, has a value or one of several values.
func hasValue(parameter, value any) bool {
	parameters, isList := parameter.([]any)
	if !isList {
		parameters = []any{parameter}
	}
	values, isList := value.([]any)
	if !isList {
		values = []any{value}
	}
	return slices.ContainsFunc(values, func(v any) bool { return slices.Contains(parameters, v) })
}

func (f *Cases) buildAttack(c Case, s Scene) (attack.Attack, error) {
	a := attack.Attack{
		Name: cmp.Or(c.Attack, c.Mirror), Kind: attack.Breach, Summary: s.ReplaceWords(c.Goal), Role: c.Role,
		Harm: f.reason, References: f.references, StoppedBy: f.findStopper(c),
	}
	if c.Harm != "" {
		a.Harm, a.References = c.Harm, c.References
	}
	object, old, err := f.BuildObjects(c, s)
	if err != nil {
		return a, err
	}
	a.Request = &attack.Request{Verb: attack.Verb(cmp.Or(c.Verb, string(attack.Create))), Subresource: c.Subresource}
	if old == nil {
		a.Request.Object, err = toTyped(object)
	} else {
		a.Request.Verb = attack.Verb(cmp.Or(c.Verb, string(attack.Update)))
		if a.Request.Change, err = buildChange(old, object); err == nil {
			a.Request.Object, err = toTyped(old)
		}
	}
	if err != nil {
		return a, fmt.Errorf("%s: %w", a.Name, err)
	}
	if a.Request.Verb != attack.Create {
		a.Setup = []client.Object{a.Request.Object}
	}
	a = f.addUser(c, a)
	if f.Namespace != nil {
		a = attack.SendInNamespace(&corev1.Namespace{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
			ObjectMeta: metav1.ObjectMeta{
				Name:   s.Words["own"] + "-" + a.Name,
				Labels: f.Namespace.Labels, Annotations: f.Namespace.Annotations,
			},
		}, a, buildPermission(a.Request))
	}
	return a, nil
}

// addUser sets the user and the permissions of an attack.
func (*Cases) addUser(c Case, a attack.Attack) attack.Attack {
	if c.Mirror != "" {
		a.Kind = attack.Mirror
	}
	switch {
	case len(c.Groups) > 0 && a.Kind == attack.Mirror:
		return attack.SendAsAdmin(a)
	case len(c.Groups) > 0:
		a.AsGroups = c.Groups
	case c.Granted:
		return attack.GrantToEveryone(a, buildPermission(a.Request))
	}
	return a
}

func (f *Cases) findStopper(c Case) attack.Stopper {
	switch policy := f.FindPolicy(c); {
	case c.Mirror != "":
		return attack.Nobody
	case c.RefusedByRBAC:
		return attack.ByRBAC
	case c.Warning != "":
		return attack.ByWarning(policy, c.Rule)
	default:
		return attack.ByPolicy(policy, c.Rule)
	}
}

// buildPermission returns the permission for a request.
func buildPermission(r *attack.Request) rbacv1.PolicyRule {
	kind := r.Object.GetObjectKind().GroupVersionKind()
	resource, _ := meta.UnsafeGuessKindToResource(kind)
	verbs := []string{string(r.Verb)}
	if r.Verb == attack.Update {
		verbs = []string{string(attack.Get), string(attack.Update)}
	}
	if r.Subresource != "" {
		resource.Resource += "/" + r.Subresource
	}
	return rbacv1.PolicyRule{APIGroups: []string{kind.Group}, Resources: []string{resource.Resource}, Verbs: verbs}
}

var kinds = sync.OnceValue(scheme.New)

// toTyped returns an object in its Go type, if it has one. Unknown fields are errors.
func toTyped(u *unstructured.Unstructured) (client.Object, error) {
	typed, err := kinds().New(u.GroupVersionKind())
	if runtime.IsNotRegisteredError(err) {
		return u, nil
	}
	if err == nil {
		err = runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(u.Object, typed, true)
	}
	object, ok := typed.(client.Object)
	if err == nil && !ok {
		err = fmt.Errorf("%T has no metadata", typed)
	}
	return object, err
}

// buildChange returns a function that makes the difference between two objects in a live object. In
// built-in kinds, items of lists such as containers keep the fields that the API server has set.
func buildChange(old, object *unstructured.Unstructured) (func(client.Object) error, error) {
	before, err := old.MarshalJSON()
	if err != nil {
		return nil, err
	}
	after, err := object.MarshalJSON()
	if err != nil {
		return nil, err
	}
	return func(live client.Object) error {
		document, err := json.Marshal(live)
		if err != nil {
			return err
		}
		if document, err = patchDocument(document, before, after, live); err != nil {
			return err
		}
		reflect.ValueOf(live).Elem().SetZero()
		return json.Unmarshal(document, live)
	}, nil
}

// patchDocument makes the difference between two objects of a kind in a third one.
func patchDocument(document, before, after []byte, kind client.Object) ([]byte, error) {
	if _, ok := kind.(runtime.Unstructured); ok {
		patch, err := jsonpatch.CreateMergePatch(before, after)
		if err != nil {
			return nil, err
		}
		return jsonpatch.MergePatch(document, patch)
	}
	patch, err := strategicpatch.CreateTwoWayMergePatch(before, after, kind)
	if err != nil {
		return nil, err
	}
	return strategicpatch.StrategicMergePatch(document, patch, kind)
}
