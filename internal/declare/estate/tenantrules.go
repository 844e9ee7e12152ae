package estate

import (
	"reflect"

	"k8s.io/apimachinery/pkg/api/equality"

	"croft.dev/croft/api/v1alpha1"
)

// CopyAllowances sets the fields of TenantRules that come from a tenant's allowances. All allowances
// must be set.
func CopyAllowances(to *v1alpha1.TenantRulesSpec, from *v1alpha1.Allowances) {
	to.PolicySettings = from.PolicySettings
	pairFields(to, from, func(rule, allowance reflect.Value) { rule.Set(allowance) })
}

// ReadAllowances sets the allowances that differ from the built-in defaults in TenantRules. A list
// that the TenantRules do not have allows nothing.
func ReadAllowances(from *v1alpha1.TenantRulesSpec, to *v1alpha1.Allowances) {
	builtin := builtinAllowances()
	settings := reflect.ValueOf(&to.PolicySettings).Elem()
	for field, value := range reflect.ValueOf(from.PolicySettings).Fields() {
		if field.Type.Kind() == reflect.Slice && value.IsNil() {
			value = reflect.MakeSlice(field.Type, 0, 0)
		}
		unchanged := reflect.ValueOf(builtin.PolicySettings).FieldByIndex(field.Index)
		if !value.IsZero() && !equality.Semantic.DeepEqual(value.Interface(), unchanged.Interface()) {
			settings.FieldByIndex(field.Index).Set(value)
		}
	}
	pairFields(from, to, func(rule, allowance reflect.Value) { allowance.Set(rule) })
}

// pairFields calls convert with the fields of allowances that have fields of their own. For Images.Digest,
// TenantRules have ImagesDigest, and so for all of them. An allowance that is missing and gets no field stays missing.
func pairFields(
	rules *v1alpha1.TenantRulesSpec, allowances *v1alpha1.Allowances, convert func(rule, allowance reflect.Value),
) {
	for field, allowance := range reflect.ValueOf(allowances).Elem().Fields() {
		if field.Type.Kind() != reflect.Pointer || field.Type.Elem().Kind() != reflect.Struct {
			continue
		}
		whole := allowance
		if whole.IsNil() {
			whole = reflect.New(field.Type.Elem())
		}
		for part, value := range whole.Elem().Fields() {
			convert(reflect.ValueOf(rules).Elem().FieldByName(field.Name+part.Name), value)
		}
		if allowance.IsNil() && !whole.Elem().IsZero() {
			allowance.Set(whole)
		}
	}
}
