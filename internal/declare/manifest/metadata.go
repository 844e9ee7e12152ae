package manifest

import (
	"slices"
)

// ownMetadata are the fields that users write. The API server writes serverMetadata, which an
// object saved from a cluster still has.
var (
	ownMetadata    = []string{"annotations", "labels", "name"}
	serverMetadata = []string{
		"creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp", "finalizers", "generation",
		"managedFields", "ownerReferences", "resourceVersion", "selfLink", "uid",
	}
)

// cleanMetadata checks the part of an object that its CustomResourceDefinition does not cover,
// and drops the API server's fields. It returns the object's name.
func cleanMetadata(declared map[string]any) (string, []issue) {
	written, ok := declared["metadata"].(map[string]any)
	if !ok {
		declared["metadata"] = map[string]any{}
		return "", []issue{{"metadata", "must be a mapping with the object's name, such as {name: shop}"}}
	}
	var issues []issue
	clean := map[string]any{}
	for key, v := range written {
		switch {
		case slices.Contains(serverMetadata, key):
		case !slices.Contains(ownMetadata, key):
			issues = append(issues, issue{"metadata." + key, explainUnknownField(key, ownMetadata)})
		default:
			clean[key] = v
		}
	}
	for _, key := range []string{"annotations", "labels"} {
		if !isTextMap(clean[key]) {
			issues = append(issues, issue{"metadata." + key, "must be a mapping from text to text; put numbers and true or false in quotes"})
			delete(clean, key)
		}
	}
	name, ok := clean["name"].(string)
	if !ok || name == "" {
		issues = append(issues, issue{"metadata.name", "every object needs a name; a name of digits must be in quotes"})
		delete(clean, "name")
	}
	declared["metadata"] = clean
	return name, issues
}

func isTextMap(v any) bool {
	if v == nil {
		return true
	}
	m, ok := v.(map[string]any)
	for _, item := range m {
		if _, text := item.(string); !text {
			return false
		}
	}
	return ok
}
