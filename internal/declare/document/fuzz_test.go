package document_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"croft.dev/croft/internal/declare/document"
)

// FuzzRead searches for files of any objects that cause a panic, or a line outside of the
// file.
func FuzzRead(f *testing.F) {
	examples, err := filepath.Glob("../../../examples/*.yaml")
	if err != nil || len(examples) == 0 {
		f.Fatal("no examples: ", err)
	}
	for _, example := range examples {
		content, err := os.ReadFile(example)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(content)
	}
	for _, content := range []string{"a: 1\n---\nb: [\n--- \nc: {metadata: {name: x}}", "{}{}[]", "--- &a\na: *a", "---\r\n...\n%YAML 1.1\n---\n", "metadata:\n- name"} {
		f.Add([]byte(content))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		documents, problems := document.Read("stream.yaml", content)
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
