package apply

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"k8s.io/apimachinery/pkg/util/json"

	"croft.dev/croft/api/v1alpha1"
)

// The API server says in managedFields which fields croft has set. It stops at
// atomic lists and maps: of these it says that they are croft's, and not which of
// the fields in them croft has set and which came by a default. Such a field that
// croft wants no longer would stay for ever, taken for a default.
//
// So croft signs each object with a hash of the content that it applied. An object
// that has more than is wanted is left alone if its signature is that of the
// content that is wanted: then the rest came by defaults. Otherwise it is applied
// once, the API server replaces atomic lists and maps as a whole, and the signature
// is right from then on. An object that has exactly what is wanted needs none.

// signatureBytes is how much of the hash an object carries.
const signatureBytes = 8

// contentOf is what an object says besides its metadata and status. Objects that
// were read as Go types do not carry their own kind, so it is left out.
func contentOf(t tree) tree {
	content := tree{}
	for field, v := range t {
		switch field {
		case "apiVersion", "kind", "metadata", "status":
		default:
			content[field] = v
		}
	}
	return content
}

// sign adds its signature to an object. One that is metadata alone needs none:
// managedFields say everything of that.
func sign(t tree) error {
	content := contentOf(t)
	if len(content) == 0 || t["kind"] == "Namespace" { // whose content is free
		return nil
	}
	raw, err := json.Marshal(content)
	if err != nil {
		return fmt.Errorf("sign: %w", err)
	}
	hash := sha256.Sum256(raw)
	note(t, v1alpha1.AppliedAnnotation, hex.EncodeToString(hash[:signatureBytes]))
	return nil
}

// note annotates an object with what croft has to remember of it.
func note(t tree, key, value string) {
	metadata, _ := t["metadata"].(tree)
	annotations, ok := metadata["annotations"].(tree)
	if !ok {
		annotations = tree{}
		metadata["annotations"] = annotations
	}
	annotations[key] = value
}

// signature is that of an object, "" if it has none.
func signature(t tree) string {
	metadata, _ := t["metadata"].(tree)
	annotations, _ := metadata["annotations"].(tree)
	signature, _ := annotations[v1alpha1.AppliedAnnotation].(string)
	return signature
}

// unnoted takes croft's notes off an object that is shown to people.
func unnoted(t tree) {
	metadata, _ := t["metadata"].(tree)
	annotations, _ := metadata["annotations"].(tree)
	delete(annotations, v1alpha1.AppliedAnnotation)
	delete(annotations, v1alpha1.OwnerAnnotation)
	if annotations != nil && len(annotations) == 0 {
		delete(metadata, "annotations")
	}
}
