package manifest

import (
	"go.yaml.in/yaml/v3"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/document"
	"croft.dev/croft/internal/declare/wording"
)

// sections are the keys of the compact form that map names to objects, with the kind of each.
var sections = map[string]string{
	"pools":             KindPool,
	"tenants":           KindTenant,
	"secondaryNetworks": KindNetwork,
}

// platformKey is the key of the compact form for the single Platform.
const platformKey = "platform"

// readCompact expands croft.yaml into objects.
func (r *reader) readCompact(root *yaml.Node) {
	for i := 0; i+1 < len(root.Content); i += 2 {
		key, body := root.Content[i], root.Content[i+1]
		if key.Value == platformKey {
			r.expandEntry(KindPlatform, v1alpha1.PlatformName, key, body, platformKey)
			continue
		}
		kind, ok := sections[key.Value]
		if !ok {
			known := []string{platformKey, "pools", "secondaryNetworks", "tenants"}
			r.reportUnreadable(key.Line, key.Value, "%s", explainUnknownField(key.Value, known))
			continue
		}
		r.readSection(kind, key, body)
	}
}

// readSection expands the objects of one kind.
func (r *reader) readSection(kind string, key, body *yaml.Node) {
	switch {
	case body.Kind == yaml.MappingNode:
		for i := 0; i+1 < len(body.Content); i += 2 {
			name := body.Content[i]
			r.expandEntry(kind, name.Value, name, body.Content[i+1], document.JoinPath(key.Value, name.Value))
		}
	case body.ShortTag() != "!!null":
		r.reportUnreadable(key.Line, key.Value, "must be a mapping from names to their settings, not %s", wording.Describe(document.Decode(body)))
	}
}

// expandEntry creates the object of one entry. An entry without a value is an object with all
// defaults.
func (r *reader) expandEntry(kind, name string, key, body *yaml.Node, path string) {
	spec := document.Decode(body)
	if spec == nil {
		spec = map[string]any{}
	}
	issues := append(r.loadUserData(spec), r.loadObjects(kind, spec)...)
	r.addObject(kind, &origin{
		file: r.file, name: name, line: key.Line, node: body, path: path,
		declared: map[string]any{
			"apiVersion": v1alpha1.GroupVersion.String(),
			"kind":       kind,
			"metadata":   map[string]any{"name": name},
			"spec":       spec,
		},
	}, issues)
}
