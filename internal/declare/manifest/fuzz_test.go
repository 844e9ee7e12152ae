package manifest_test

import (
	"strings"
	"testing"

	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/declare/manifest"
)

// FuzzParse searches for files that cause a panic, a hang, or a message about croft's internals
// instead of problems.
func FuzzParse(f *testing.F) {
	for _, content := range manifest.Examples(f) {
		f.Add([]byte(content))
	}
	for _, test := range manifest.InvalidByThemselves {
		f.Add([]byte(manifest.Base + test.GetContent()))
	}
	for _, test := range manifest.Unreadable() {
		if len(test.GetContent()) < 10_000 {
			f.Add([]byte(test.GetContent()))
		}
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		d, problems := manifest.Parse("croft.yaml", content)
		e, more := estate.Build(d)
		problems = append(problems, more...)
		if e == nil && len(problems) == 0 {
			t.Error("there is no estate, and no problem either")
		}
		d.Objects()
		for _, p := range problems {
			if line := p.Error(); strings.Contains(line, "\n") || p.Message == "" {
				t.Errorf("not one line: %q", line)
			}
			for _, inside := range []string{"v1alpha1.", "interface {}", "map[string]", "unmarshal", "json:", "cannot be read"} {
				if strings.Contains(p.Message, inside) && !strings.Contains(string(content), inside) {
					t.Errorf("speaks of croft's insides: %s", p.Message)
				}
			}
		}
	})
}
