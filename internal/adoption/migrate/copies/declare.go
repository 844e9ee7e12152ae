package copies

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/adoption/migrate/draft"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/declare/wording"
)

// platformObjects is the field with the objects of all tenants.
const platformObjects = "platform.tenantDefaults.objects"

// Declared is the result for one object.
type Declared struct {
	// To are the fields of croft.yaml that contain it.
	To []string
	// Refused are the tenants that cannot have it, by the reason.
	Refused map[string][]string
}

// Declare writes an object into the objects of tenants. texts are its manifests in JSON, by tenant. If every is set,
// tenants to come get the object too: it becomes one of the platform's objects, if all tenants can have the
// same manifest.
func Declare(d *draft.Draft, texts map[string]string, every bool) Declared {
	result := Declared{Refused: map[string][]string{}}
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		if why := explainRefused(d, name, texts[name]); why != "" {
			result.Refused[why] = append(result.Refused[why], name)
		}
	}
	if every && len(result.Refused) == 0 && declareForAll(d, texts) {
		result.To = []string{platformObjects}
		return result
	}
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		if isRefused(result.Refused, name) {
			continue
		}
		if spec := &d.Tenants[name].Spec; !containsText(spec.Objects, texts[name]) {
			spec.Objects = append(spec.Objects, toRaw(texts[name]))
		}
		result.To = append(result.To, draft.TenantField(name, "objects"))
	}
	return result
}

// declareForAll writes an object into the platform's objects, if it is the same for all tenants. It reports
// whether it did.
func declareForAll(d *draft.Draft, texts map[string]string) bool {
	same := slices.Compact(slices.Sorted(maps.Values(texts)))
	if len(same) != 1 || len(texts) != len(d.Tenants) {
		return false
	}
	all := append(slices.Clone(d.Platform.TenantDefaults.Objects), toRaw(same[0]))
	if !estate.AreValidObjects(all) {
		return false
	}
	d.Platform.TenantDefaults.Objects = all
	return true
}

// explainRefused returns why a tenant cannot have an object, or "".
func explainRefused(d *draft.Draft, name, text string) string {
	spec := d.Tenants[name].Spec
	if containsText(spec.Objects, text) {
		return ""
	}
	t := v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}
	return estate.ExplainRefusedObject(&d.Platform, &t, toRaw(text))
}

func toRaw(text string) runtime.RawExtension { return runtime.RawExtension{Raw: []byte(text)} }

func containsText(list []runtime.RawExtension, text string) bool {
	return slices.ContainsFunc(list, func(raw runtime.RawExtension) bool { return string(raw.Raw) == text })
}

func isRefused(refused map[string][]string, name string) bool {
	for _, names := range refused {
		if slices.Contains(names, name) {
			return true
		}
	}
	return false
}

// most is the maximum number of tenants that a message names.
const most = 5

// FormatRefused returns the reasons for which tenants cannot have an object.
func (r Declared) FormatRefused() string {
	var all []string
	for _, why := range slices.Sorted(maps.Keys(r.Refused)) {
		all = append(all, fmt.Sprintf("objects of %s cannot contain it: %s", wording.FormatFirst(r.Refused[why], most), why))
	}
	return strings.Join(all, "; ")
}
