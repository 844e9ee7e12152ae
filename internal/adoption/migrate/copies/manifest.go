package copies

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/adoption/migrate/draft"
)

// Marshal returns the text of a manifest. Equal manifests have equal texts.
func Marshal(manifest map[string]any) (string, error) {
	text, err := json.Marshal(manifest)
	return string(text), err
}

// BuildManifest returns the manifest of an object of a cluster: its content, name, labels and annotations, without
// the state and the metadata that the API server and other tools wrote. omit are further labels to leave out.
func BuildManifest(content map[string]any, omit ...string) map[string]any {
	manifest := maps.Clone(content)
	delete(manifest, "status")
	before, _ := content["metadata"].(map[string]any)
	metadata := map[string]any{}
	if name, ok := before["name"]; ok {
		metadata["name"] = name
	}
	for _, field := range []string{"labels", "annotations"} {
		kept := map[string]any{}
		marks, _ := before[field].(map[string]any)
		for key, value := range marks {
			if !isToolKey(key) && !slices.Contains(omit, key) {
				kept[key] = value
			}
		}
		if len(kept) > 0 {
			metadata[field] = kept
		}
	}
	manifest["metadata"] = metadata
	return manifest
}

// toolDomains are the domains of labels and annotations that only the tools read which wrote them.
var toolDomains = []string{draft.CapsuleGroup, "projectcapsule.dev", draft.HNCGroup, v1alpha1.GroupVersion.Group, "meta.helm.sh"}

func isToolKey(key string) bool {
	domain, _, _ := strings.Cut(key, "/")
	return key == v1alpha1.ManagedByLabel || key == "kubectl.kubernetes.io/last-applied-configuration" ||
		slices.ContainsFunc(toolDomains, func(d string) bool { return domain == d || strings.HasSuffix(domain, "."+d) })
}
