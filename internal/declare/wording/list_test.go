package wording

import (
	"testing"
)

// TestFormatFirst fails if a message names more objects than fit, or does not count the others.
func TestFormatFirst(t *testing.T) {
	names := []string{"a", "b", "c", "d", "e"}
	for _, test := range []struct {
		names []string
		most  int
		want  string
	}{
		{nil, 3, ""},
		{names[:2], 3, "a, b"},
		{names[:3], 3, "a, b, c"},
		{names, 3, "a, b, c and 2 more"},
		{names, 1, "a and 4 more"},
	} {
		if got := FormatFirst(test.names, test.most); got != test.want {
			t.Errorf("%q, at most %d: %q, want %q", test.names, test.most, got, test.want)
		}
	}
}

func TestFormatCount(t *testing.T) {
	for n, want := range map[int]string{0: "0 pods", 1: "1 pod", 2: "2 pods"} {
		if got := FormatCount(n, "pod"); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}
