package estate

import (
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	"croft.dev/croft/api/v1alpha1"
)

type embedded struct {
	Inner []string
}

type sample struct {
	embedded
	List   []string
	Number *int64
	Object *v1alpha1.Images
	Text   string
}

// TestFillMissing expects that fields of every known type keep the value that is set, also an empty one, and
// otherwise get the other value as a whole.
func TestFillMissing(t *testing.T) {
	other := sample{
		embedded{[]string{"other"}}, []string{"a", "b"}, ptr.To[int64](7), &v1alpha1.Images{Digest: "Required"}, "other",
	}
	for name, c := range map[string]struct{ own, want sample }{
		"nothing is set": {sample{}, other},
		"a list": {
			sample{List: []string{"c"}}, sample{other.embedded, []string{"c"}, other.Number, other.Object, other.Text},
		},
		"an empty list": {
			sample{List: []string{}}, sample{other.embedded, []string{}, other.Number, other.Object, other.Text},
		},
		"a number of 0": {
			sample{Number: ptr.To[int64](0)}, sample{other.embedded, other.List, ptr.To[int64](0), other.Object, other.Text},
		},
		"another part of an object": {
			sample{Object: &v1alpha1.Images{Latest: "Forbidden"}},
			sample{other.embedded, other.List, other.Number, &v1alpha1.Images{Latest: "Forbidden"}, other.Text},
		},
		"an empty object": {
			sample{Object: &v1alpha1.Images{}},
			sample{other.embedded, other.List, other.Number, &v1alpha1.Images{}, other.Text},
		},
		"text": {
			sample{Text: "own"}, sample{other.embedded, other.List, other.Number, other.Object, "own"},
		},
		"a list of an embedded struct": {
			sample{embedded: embedded{[]string{}}},
			sample{embedded{[]string{}}, other.List, other.Number, other.Object, other.Text},
		},
	} {
		fillMissing(reflect.ValueOf(&c.own).Elem(), reflect.ValueOf(other))
		if diff := cmp.Diff(c.want, c.own, cmp.AllowUnexported(sample{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestFillMissingPanics expects a panic for fields for which the zero value may be a value that a platform sets.
func TestFillMissingPanics(t *testing.T) {
	for name, unknown := range map[string]any{
		"a map":     &struct{ Field map[string]string }{},
		"a number":  &struct{ Field int64 }{},
		"a boolean": &struct{ Field bool }{},
		"any type":  &struct{ Field any }{},
	} {
		func() {
			defer func() {
				if reason, ok := recover().(string); !ok || !strings.Contains(reason, "Field is a") {
					t.Errorf("%s: the panic is %q", name, reason)
				}
			}()
			fillMissing(reflect.ValueOf(unknown).Elem(), reflect.ValueOf(unknown).Elem())
		}()
	}
}

// TestMergeAllowances expects that each field of a tenant wins over the Platform's, and the Platform's over croft's.
func TestMergeAllowances(t *testing.T) {
	for _, field := range reflect.VisibleFields(reflect.TypeFor[v1alpha1.Allowances]()) {
		if field.Anonymous {
			continue
		}
		var own, defaults v1alpha1.Allowances
		get := func(of *v1alpha1.Allowances) reflect.Value {
			return reflect.ValueOf(of).Elem().FieldByIndex(field.Index)
		}
		get(&own).Set(makeValue(t, field.Type, "own"))
		get(&defaults).Set(makeValue(t, field.Type, "default"))
		merged := mergeAllowances(&defaults, &own)
		if diff := cmp.Diff(get(&own).Interface(), get(&merged).Interface()); diff != "" {
			t.Errorf("%s of a tenant (-want +got):\n%s", field.Name, diff)
		}
		merged = mergeAllowances(&defaults, &v1alpha1.Allowances{})
		if diff := cmp.Diff(get(&defaults).Interface(), get(&merged).Interface()); diff != "" {
			t.Errorf("%s of the Platform (-want +got):\n%s", field.Name, diff)
		}
		// The policies need no check for null.
		builtin := mergeAllowances(&v1alpha1.Allowances{}, &v1alpha1.Allowances{})
		if get(&builtin).IsZero() && field.Type.Kind() != reflect.String {
			t.Errorf("%s has no default", field.Name)
		}
	}
}

// makeValue returns a value of the type of an allowance.
func makeValue(t *testing.T, of reflect.Type, text string) reflect.Value {
	t.Helper()
	value := reflect.New(of).Elem()
	switch of.Kind() {
	case reflect.String:
		value.SetString(text)
	case reflect.Slice:
		value.Set(reflect.Append(value, makeValue(t, of.Elem(), text)))
	case reflect.Pointer:
		value.Set(reflect.New(of.Elem()))
		value.Elem().Set(makeValue(t, of.Elem(), text))
	case reflect.Int64:
		value.SetInt(int64(len(text)))
	case reflect.Bool:
		value.SetBool(text == "own")
	case reflect.Struct:
		for i := range of.NumField() {
			if of.Field(i).Type.Kind() == reflect.String && of.Field(i).IsExported() {
				value.Field(i).SetString(text)
				break
			}
		}
	default:
		t.Fatalf("there is no sample of a %s", of)
	}
	return value
}
