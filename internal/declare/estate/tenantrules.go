package estate

import (
	"reflect"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"

	"croft.dev/croft/api/v1alpha1"
)

// TenantRules repeat allowances in fields of the same names: as values instead of pointers, and
// quantities as text. The schemas differ, since in TenantRules every field is set. So the functions
// below convert by name, and need no change for a new field.

// CopyAllowances sets the fields of TenantRules that have the name of an allowance. All allowances
// must be set.
func CopyAllowances(to *v1alpha1.TenantRulesSpec, from *v1alpha1.Allowances) {
	pairFields(to, from, func(rule, allowance, _ reflect.Value) {
		if quantity, ok := allowance.Interface().(*resource.Quantity); ok {
			rule.SetString(quantity.String())
			return
		}
		rule.Set(reflect.Indirect(allowance))
	})
}

// ReadAllowances sets the allowances that differ from the built-in defaults in TenantRules. A list
// that the TenantRules do not have allows nothing.
func ReadAllowances(from *v1alpha1.TenantRulesSpec, to *v1alpha1.Allowances) {
	pairFields(from, to, func(rule, allowance, builtin reflect.Value) {
		value, err := convertRule(rule, allowance.Type())
		if err == nil && !equality.Semantic.DeepEqual(value.Interface(), builtin.Interface()) {
			allowance.Set(value)
		}
	})
}

// convertRule returns a field of TenantRules as an allowance.
func convertRule(rule reflect.Value, to reflect.Type) (reflect.Value, error) {
	switch {
	case to == reflect.TypeFor[*resource.Quantity]():
		quantity, err := resource.ParseQuantity(rule.String())
		return reflect.ValueOf(&quantity), err
	case to.Kind() == reflect.Pointer:
		value := reflect.New(to.Elem())
		value.Elem().Set(rule)
		return value, nil
	case to.Kind() == reflect.Slice && rule.IsNil():
		return reflect.MakeSlice(to, 0, 0), nil
	default:
		return rule, nil
	}
}

// pairFields calls convert with each field of TenantRules that has the name of an allowance, and with
// the built-in allowance. An allowance with fields of its own, such as Images.Digest, has a field of
// TenantRules for each of them: ImagesDigest.
func pairFields(
	rules *v1alpha1.TenantRulesSpec, allowances *v1alpha1.Allowances, convert func(rule, allowance, builtin reflect.Value),
) {
	pairStructs("", reflect.ValueOf(rules).Elem(), reflect.ValueOf(allowances).Elem(), reflect.ValueOf(builtinAllowances()), convert)
}

func pairStructs(prefix string, rules, allowances, builtin reflect.Value, convert func(rule, allowance, builtin reflect.Value)) {
	for field, allowance := range allowances.Fields() {
		rule, value := rules.FieldByName(prefix+field.Name), builtin.FieldByName(field.Name)
		if rule.IsValid() {
			convert(rule, allowance, value)
			continue
		}
		if field.Type.Kind() != reflect.Pointer || field.Type.Elem().Kind() != reflect.Struct {
			continue // the allowance is no part of TenantRules
		}
		inner := allowance
		if inner.IsNil() {
			inner = reflect.New(field.Type.Elem())
		}
		pairStructs(field.Name, rules, inner.Elem(), value.Elem(), convert)
		if allowance.IsNil() && !inner.Elem().IsZero() {
			allowance.Set(inner)
		}
	}
}
