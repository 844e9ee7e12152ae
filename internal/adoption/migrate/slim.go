package migrate

import (
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/adoption/migrate/draft"
	"croft.dev/croft/internal/declare/estate"
)

// slimClass removes from a class the fields that equal the base's and, from a class that was read
// back with every default, the defaults. It reports whether the effective class is unchanged. A
// nil base is empty.
func slimClass(d *draft.Draft, base, class *v1alpha1.AWSNodeClass, readBack bool) (*v1alpha1.AWSNodeClass, bool) {
	alone, over := d.Platform, d.Platform
	alone.NodeClass, over.NodeClass = v1alpha1.NodeClass{}, v1alpha1.NodeClass{AWS: base}
	want := estate.ResolveAWSClass(&alone, class)
	c := class.DeepCopy()
	same := func() bool { return equality.Semantic.DeepEqual(want, estate.ResolveAWSClass(&over, c)) }
	complete := same()
	fields := reflect.ValueOf(c).Elem()
	for i := range fields.NumField() {
		shared := base != nil && !reflect.ValueOf(base).Elem().Field(i).IsZero()
		if readBack || shared || fields.Type().Field(i).Name == "Discovery" {
			omitField(fields.Field(i), readBack, same)
		}
	}
	return c, complete && same()
}

// omitField clears a field, or as much of it as possible, if the effective class stays the same.
func omitField(field reflect.Value, within bool, same func() bool) {
	if field.IsZero() {
		return
	}
	previous := reflect.ValueOf(field.Interface())
	if field.SetZero(); same() {
		return
	}
	field.Set(previous)
	if within && field.Kind() == reflect.Pointer && field.Elem().Kind() == reflect.Struct {
		for i := range field.Elem().NumField() {
			omitField(field.Elem().Field(i), within, same)
		}
	}
}

// listOmitted returns the fields that a class had before and now inherits from the base.
func listOmitted(base, before, after *v1alpha1.AWSNodeClass) []string {
	if base == nil {
		return nil
	}
	var names []string
	from, old, now := reflect.ValueOf(base).Elem(), reflect.ValueOf(before).Elem(), reflect.ValueOf(after).Elem()
	for i := range old.NumField() {
		if !from.Field(i).IsZero() && !old.Field(i).IsZero() && now.Field(i).IsZero() {
			name, _, _ := strings.Cut(old.Type().Field(i).Tag.Get("json"), ",")
			names = append(names, name)
		}
	}
	return names
}
