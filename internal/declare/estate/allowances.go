package estate

import (
	"cmp"
	"fmt"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"croft.dev/croft/api/v1alpha1"
)

// These are the default maximum sizes of a tenant's objects, in bytes. BuiltinQuota bounds the
// number of objects. A change of one requires a change of the other, so that
// estatetest.MaxTenantBytes keeps the value that docs/explanation/walls.md states.
const (
	MaxObjectBytes      = 256 << 10
	MaxOtherObjectBytes = 48 << 10
	// MaxNoteBytes is the maximum size of Events, Leases, Elevations and TenantCallers, which are always
	// small.
	MaxNoteBytes = 8 << 10
)

// mergeAllowances returns the tenant's own allowances. A missing value is taken from the platform,
// and if it has none, from the built-in allowances.
func mergeAllowances(defaults, own *v1alpha1.Allowances) v1alpha1.Allowances {
	builtin := builtinAllowances()
	builtin.MaxHelmReleaseBytes = cmp.Or(own.MaxObjectBytes, defaults.MaxObjectBytes, builtin.MaxObjectBytes)
	merged := *own
	fillMissing(reflect.ValueOf(&merged).Elem(), reflect.ValueOf(defaults).Elem())
	fillMissing(reflect.ValueOf(&merged).Elem(), reflect.ValueOf(builtin))
	return merged
}

// fillMissing sets the fields of a struct that are missing, from a struct of the same type. A field is replaced
// as a whole. An empty list and a pointer to an empty value are not missing.
func fillMissing(to, from reflect.Value) {
	for field, value := range to.Fields() {
		other := from.FieldByIndex(field.Index)
		switch field.Type.Kind() {
		case reflect.Struct: // embedded
			fillMissing(value, other)
		case reflect.Slice, reflect.Pointer, reflect.String:
			if value.IsZero() {
				value.Set(other)
			}
		default:
			panic(fmt.Sprintf("allowances: %s is a %s, for which \"missing\" is not defined: "+
				"use a pointer, a list or text", field.Name, field.Type))
		}
	}
}

// builtinAllowances refuses objects that affect others, and allows any value of fields for
// which only a platform can name the valid values. A list without a default here is empty, and any other
// field is zero.
func builtinAllowances() v1alpha1.Allowances {
	all := []string{"*"}
	builtin := v1alpha1.Allowances{
		PolicySettings: v1alpha1.PolicySettings{
			ServiceTypes:                     []corev1.ServiceType{corev1.ServiceTypeClusterIP},
			Registries:                       all,
			ImagePullPolicies:                []corev1.PullPolicy{corev1.PullAlways},
			StorageClasses:                   all,
			IngressClasses:                   all,
			GatewayClasses:                   all,
			Issuers:                          all,
			IssuerTypes:                      []string{"selfSigned", "ca"},
			SourceHosts:                      all,
			ExternalNames:                    all,
			MaxVolumeSize:                    ptr.To(resource.MustParse("1Ti")),
			MaxTokenExpirationSeconds:        ptr.To[int64](86400),
			MaxTerminationGracePeriodSeconds: ptr.To[int64](3600),
			UnknownAnnotations:               v1alpha1.UnknownWarn,
		},
		MaxObjectBytes:      ptr.To[int64](MaxObjectBytes),
		MaxHelmReleaseBytes: ptr.To[int64](MaxObjectBytes),
		MaxOtherObjectBytes: ptr.To[int64](MaxOtherObjectBytes),
	}
	fillMissing(reflect.ValueOf(&builtin).Elem(), makeEmpty(reflect.TypeFor[v1alpha1.Allowances]()))
	return builtin
}

// makeEmpty returns a struct with empty lists, and pointers to zero values.
func makeEmpty(of reflect.Type) reflect.Value {
	empty := reflect.New(of).Elem()
	for field, value := range empty.Fields() {
		switch field.Type.Kind() {
		case reflect.Struct:
			value.Set(makeEmpty(field.Type))
		case reflect.Slice:
			value.Set(reflect.MakeSlice(field.Type, 0, 0))
		case reflect.Pointer:
			value.Set(reflect.New(field.Type.Elem()))
		default: // text and numbers have their zero value
		}
	}
	return empty
}

// firstSet returns the first list that is not nil. An empty list counts as set.
func firstSet[T any](lists ...[]T) []T {
	for _, l := range lists {
		if l != nil {
			return l
		}
	}
	return nil
}
