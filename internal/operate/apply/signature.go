package apply

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"k8s.io/apimachinery/pkg/util/json"

	"croft.dev/croft/api/v1alpha1"
)

// The API server records in managedFields which fields croft has set, but not within
// atomic lists and maps: it records that croft owns these as a whole, and not which
// fields croft set and which are defaults. A field inside that is no longer desired
// would stay for ever, mistaken for a default.
//
// So croft signs each object with a hash of the applied content. An object with extra
// fields is left alone if its signature equals the desired content's signature: the
// extra fields are defaults. Otherwise the object is applied once, the API server replaces
// atomic lists and maps as a whole, and the signature is right from then on. An object
// without extra fields needs no signature.

// signatureBytes is the length of the hash in an object.
const signatureBytes = 8

// getContent returns an object without its metadata and status. It also omits the kind,
// which objects that were read as Go types do not contain.
func getContent(t tree) tree {
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

// signTree adds the signature to an object. An object with metadata alone needs none, because
// managedFields cover all of it.
func signTree(t tree) error {
	content := getContent(t)
	if len(content) == 0 || t["kind"] == "Namespace" { // a namespace's content is free
		return nil
	}
	raw, err := json.Marshal(content)
	if err != nil {
		return fmt.Errorf("sign: %w", err)
	}
	hash := sha256.Sum256(raw)
	annotateTree(t, v1alpha1.AppliedAnnotation, hex.EncodeToString(hash[:signatureBytes]))
	return nil
}

// annotateTree annotates an object with data that croft needs later.
func annotateTree(t tree, key, value string) {
	metadata, _ := t["metadata"].(tree)
	annotations, ok := metadata["annotations"].(tree)
	if !ok {
		annotations = tree{}
		metadata["annotations"] = annotations
	}
	annotations[key] = value
}

// getSignature returns the signature of an object, or "".
func getSignature(t tree) string {
	metadata, _ := t["metadata"].(tree)
	annotations, _ := metadata["annotations"].(tree)
	signature, _ := annotations[v1alpha1.AppliedAnnotation].(string)
	return signature
}

// stripBookkeeping removes croft's bookkeeping from an object that is shown to people.
func stripBookkeeping(t tree) {
	metadata, _ := t["metadata"].(tree)
	annotations, _ := metadata["annotations"].(tree)
	delete(annotations, v1alpha1.AppliedAnnotation)
	delete(annotations, v1alpha1.OwnerAnnotation)
	if annotations != nil && len(annotations) == 0 {
		delete(metadata, "annotations")
	}
}
