package estate

import (
	"strings"
	"testing"
)

// FuzzParse looks for files that are not answered with problems but with a panic,
// a hang, or a message that speaks of croft's insides.
func FuzzParse(f *testing.F) {
	for _, content := range examples(f) {
		f.Add([]byte(content))
	}
	for _, test := range invalidByThemselves {
		f.Add([]byte(base + test.content))
	}
	for _, test := range unreadable() {
		if len(test.content) < 10_000 {
			f.Add([]byte(test.content))
		}
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		d, problems := Parse("croft.yaml", content)
		e, more := Build(d)
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
