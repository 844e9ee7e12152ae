package manifest

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseKeepsDeclaredObject(t *testing.T) {
	d := parseValid(t, base+"pools: {jobs: {emptyTTL: 10m}}\n")
	want := map[string]any{
		"apiVersion": "croft.dev/v1alpha1", "kind": "Pool",
		"metadata": map[string]any{"name": "jobs"},
		"spec":     map[string]any{"emptyTTL": "10m"},
	}
	if diff := cmp.Diff(want, d.origins[Object{ID{KindPool, "jobs"}, 0}].declared); diff != "" {
		t.Errorf("declared (-want +got):\n%s", diff)
	}
}
