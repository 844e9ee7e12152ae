package document

import (
	"strings"
	"testing"
)

// TestRead expects an invalid document not to affect the others, and line numbers relative
// to the file.
func TestRead(t *testing.T) {
	documents, problems := Read("f.yaml", []byte("a: 1\n---\nb: [\n---\n# a comment\nc:\n- d: x\n--- \n---\n{\"e\": 1}\n"))
	if len(documents) != 3 {
		t.Fatalf("there are %d documents", len(documents))
	}
	for i, want := range []int{1, 6, 10} {
		if got := documents[i].Start; got != want {
			t.Errorf("document %d begins on line %d, want %d", i, got, want)
		}
	}
	for path, want := range map[string]int{"c": 6, "c/0": 7, "c/0/d": 7, "c/0/e": 7, "nothing": 6} {
		if got := documents[1].FindLine(strings.Split(path, "/")...); got != want {
			t.Errorf("%s is on line %d, want %d", path, got, want)
		}
	}
	if len(problems) != 1 || problems[0].Line < 3 || problems[0].Line > 4 {
		t.Errorf("the problems are %v", problems)
	}
}
