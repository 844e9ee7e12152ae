package kubernetes

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/adoption/migrate/draft"
	"croft.dev/croft/internal/adoption/migrate/source"
	"croft.dev/croft/internal/declare/estate"
)

// ReadObjects reads ConfigMaps that croft wrote into tenants' namespaces, back into the objects of
// their Tenants. Other ConfigMaps stay as they are.
func ReadObjects(d *draft.Draft) {
	manifests := map[string]map[string][]string{} // by tenant and name
	managed := slices.DeleteFunc(d.List("", "ConfigMap"), func(o *source.Object) bool { return !draft.IsManaged(o) || d.FindTenant(o.Namespace) == "" })
	for _, o := range managed {
		tenant := d.FindTenant(o.Namespace)
		if manifests[tenant] == nil {
			manifests[tenant] = map[string][]string{}
		}
		manifests[tenant][o.Name] = append(manifests[tenant][o.Name], buildManifest(o))
	}
	for _, o := range managed {
		tenant := d.FindTenant(o.Namespace)
		same := manifests[tenant][o.Name]
		if len(same) != len(d.Namespaces(tenant)) || len(slices.Compact(slices.Clone(same))) != 1 {
			o.Root().MarkNotKept("differs between the namespaces of tenant %s: write it into its objects, with parameters", tenant)
			continue
		}
		own := &d.Tenants[tenant].Spec.Objects
		raw := runtime.RawExtension{Raw: []byte(same[0])}
		read := slices.ContainsFunc(*own, func(other runtime.RawExtension) bool { return string(other.Raw) == same[0] })
		if !read && !estate.AreValidObjects(append(slices.Clone(*own), raw)) {
			o.Root().MarkNotKept("cannot be in the objects of croft.yaml")
			continue
		}
		if !read {
			*own = append(*own, raw)
		}
		o.Root().MarkKept(draft.TenantField(tenant, "objects"))
	}
}

// buildManifest returns the manifest of which croft wrote an object.
func buildManifest(o *source.Object) string {
	manifest := maps.Clone(o.Content)
	metadata := map[string]any{"name": o.Name}
	for _, field := range []string{"labels", "annotations"} {
		kept := map[string]any{}
		for _, f := range o.At("metadata", field).Fields() {
			if key := f.Key(); key != v1alpha1.ManagedByLabel && !strings.HasPrefix(key, v1alpha1.GroupVersion.Group+"/") {
				kept[key] = f.Value()
			}
		}
		if len(kept) > 0 {
			metadata[field] = kept
		}
	}
	manifest["metadata"] = metadata
	text, err := json.Marshal(manifest)
	if err != nil {
		return ""
	}
	return estate.EscapeParameters(string(text))
}
