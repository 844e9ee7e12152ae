package trial_test

import (
	"strings"
	"testing"

	"croft.dev/croft/internal/prove/trial"
)

// FuzzReadManifests searches for a team's files that cause a panic, or an error without file and
// line.
func FuzzReadManifests(f *testing.F) {
	for _, content := range []string{
		"apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n---\n# nothing\n---\napiVersion: v1\nkind: List\nitems: [{apiVersion: v1, kind: Pod, metadata: {name: b}}]",
		"apiVersion: v1\nkind: PodList\nitems: [{metadata: {name: a}}, 1]",
		`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"a"},"spec":{"replicas":"x"}}{"kind":1}`,
		"kind: List\napiVersion: v1\nitems: {a: b}", "a: &a\n- *a", "? {a: b}\n: c", "apiVersion: [v1]\nkind: Pod",
	} {
		f.Add([]byte(content))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		manifests, err := trial.ReadManifests("team.yaml", content)
		if err != nil && !strings.HasPrefix(err.Error(), "team.yaml:") {
			t.Errorf("no file: %v", err)
		}
		for _, m := range manifests {
			if m.Line < 1 || m.Object.GetKind() == "" || m.Object.GetAPIVersion() == "" {
				t.Errorf("line %d: %v", m.Line, m.Object)
			}
		}
	})
}
