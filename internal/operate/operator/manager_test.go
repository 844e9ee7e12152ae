package operator

import (
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/scheme"
	"croft.dev/croft/internal/declare/secondary"
)

// TestOptionalKinds fails if the operator would not start on a cluster without a kind that
// buildCacheOptions lists. Only built-in kinds, and croft's own, which are installed with the
// operator, need no entry in mapOptionalKinds.
func TestOptionalKinds(t *testing.T) {
	for object := range buildCacheOptions(secondary.Plugins{}).ByObject {
		kind, err := apiutil.GVKForObject(object, scheme.New())
		if err != nil {
			t.Fatal(err)
		}
		if builtIn := !strings.Contains(kind.Group, "."); builtIn || kind.Group == v1alpha1.GroupVersion.Group {
			continue
		}
		if _, err := mapOptionalKinds().RESTMapping(kind.GroupKind(), kind.Version); err != nil {
			t.Errorf("optionalKinds lacks it: %v", err)
		}
	}
}
