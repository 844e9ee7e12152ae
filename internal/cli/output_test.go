package cli

import (
	"bytes"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// TestPrintObjects fails if the YAML differs from the one of sigs.k8s.io/yaml, which other tools of Kubernetes write, or if
// objects are missing or in another order.
func TestPrintObjects(t *testing.T) {
	var objects []client.Object
	var want bytes.Buffer
	for i := range printedAtOnce + 1 {
		o := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": strings.Repeat("a", i%50+1), "labels": map[string]any{}},
			"texts": []any{
				"yes", "null", "1e3", "0777", "0x1f", "1.0", "~", "", " a", "a: b", "- a", "#", "a\nb\n", "\ta", "2026-11-28", "é", "<a & b>", "\u2028", "%", "@",
			},
			"values": []any{int64(i), int64(1) << 60, 0.5, 1e21, -1.0, true, nil, []any{}, map[string]any{}},
			"1":      "a number as a key",
		}}
		objects = append(objects, o)
		document, err := yaml.Marshal(o.Object)
		if err != nil {
			t.Fatal(err)
		}
		want.WriteString("---\n" + string(document))
	}
	var got bytes.Buffer
	if err := printObjects(&got, objects, formatYAML); err != nil {
		t.Fatal(err)
	}
	if got.String() != want.String() {
		t.Errorf("got %.1500s\nwant %.1500s", got.String(), want.String())
	}
}
