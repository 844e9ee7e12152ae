package manifest

import (
	"go.yaml.in/yaml/v3"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/wording"
)

// sections are the keys of the compact form that map names to objects, with the kind of each.
var sections = map[string]string{
	"pools":             KindPool,
	"tenants":           KindTenant,
	"secondaryNetworks": KindNetwork,
}

// platformKey is the key of the compact form for the single Platform.
const platformKey = "platform"

// compact expands croft.yaml into objects.
func (r *reader) compact(root *yaml.Node) {
	for i := 0; i+1 < len(root.Content); i += 2 {
		key, body := root.Content[i], root.Content[i+1]
		if key.Value == platformKey {
			r.expand(KindPlatform, v1alpha1.PlatformName, key, body, platformKey)
			continue
		}
		kind, ok := sections[key.Value]
		if !ok {
			known := []string{platformKey, "pools", "secondaryNetworks", "tenants"}
			r.unreadable(key.Line, key.Value, "%s", unknownField(key.Value, known))
			continue
		}
		r.section(kind, key, body)
	}
}

// section expands the objects of one kind.
func (r *reader) section(kind string, key, body *yaml.Node) {
	switch {
	case body.Kind == yaml.MappingNode:
		for i := 0; i+1 < len(body.Content); i += 2 {
			name := body.Content[i]
			r.expand(kind, name.Value, name, body.Content[i+1], join(key.Value, name.Value))
		}
	case body.ShortTag() != "!!null":
		r.unreadable(key.Line, key.Value, "must be a mapping from names to what each one is, not %s", wording.Describe(value(body)))
	}
}

// expand creates the object of one entry. An entry without a value is an object with all
// defaults.
func (r *reader) expand(kind, name string, key, body *yaml.Node, path string) {
	spec := value(body)
	if spec == nil {
		spec = map[string]any{}
	}
	issues := r.userData(spec)
	r.take(kind, &origin{
		file: r.file, name: name, line: key.Line, node: body, path: path,
		declared: map[string]any{
			"apiVersion": v1alpha1.GroupVersion.String(),
			"kind":       kind,
			"metadata":   map[string]any{"name": name},
			"spec":       spec,
		},
	}, issues)
}
