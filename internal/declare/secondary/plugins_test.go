package secondary

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/labels"
)

// TestParsePlugins fails if the default does not select the pods of the upstream manifests,
// if an empty selector selects any, or if a mistake is not reported in one line.
func TestParsePlugins(t *testing.T) {
	p, err := ParsePlugins(PluginsNamespace, PluginsLabels)
	if err != nil || p.IsEmpty() {
		t.Fatal(p, err)
	}
	for name, want := range map[string]bool{"multus": true, "whereabouts": true, "aws-node": false} {
		if p.Labels.Matches(labels.Set{"name": name}) != want {
			t.Errorf("pods with the label name=%s: selected is %t", name, !want)
		}
	}
	if none, err := ParsePlugins("kube-system", " "); err != nil || !none.IsEmpty() {
		t.Error(none, err)
	}
	for _, bad := range [][2]string{{"kube_system", "a=b"}, {"", "a=b"}, {"kube-system", "name in"}} {
		if _, err := ParsePlugins(bad[0], bad[1]); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
