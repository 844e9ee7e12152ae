package manifest_test

import (
	"bytes"
	"strings"
	"testing"

	"croft.dev/croft/internal/declare/manifest"
)

// FuzzReadDocuments searches for files of any objects that cause a panic, or a line outside of the
// file.
func FuzzReadDocuments(f *testing.F) {
	for _, content := range manifest.Examples(f) {
		f.Add([]byte(content))
	}
	for _, content := range []string{"a: 1\n---\nb: [\n--- \nc: {metadata: {name: x}}", "{}{}[]", "--- &a\na: *a", "---\r\n...\n%YAML 1.1\n---\n", "metadata:\n- name"} {
		f.Add([]byte(content))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		documents, problems := manifest.ReadDocuments("stream.yaml", content)
		lines := bytes.Count(content, []byte("\n")) + 1
		for i := range documents {
			for _, path := range [][]string{nil, {"metadata", "name"}, {"items", "0"}} {
				if line := documents[i].FindLine(path...); line < 1 || line > lines+bytes.Count(content, []byte("\r")) {
					t.Errorf("%v is on line %d of %d", path, line, lines)
				}
			}
		}
		for _, p := range problems {
			if text := p.Error(); strings.Contains(text, "\n") {
				t.Errorf("not one line: %q", text)
			}
		}
	})
}
