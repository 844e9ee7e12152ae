package proxy

import (
	"strings"
	"testing"
)

// FuzzAccept fails if an Accept header causes a panic, asks the API server for an encoding that
// cannot be merged, or adds a header.
func FuzzAccept(f *testing.F) {
	for _, accept := range []string{
		"application/json;as=Table;v=v1;g=meta.k8s.io,application/json", "application/vnd.kubernetes.protobuf, */*;q=0.1", "application/cbor",
		",,", "application/json;a=\"b,c\"", "application/json\r\nX: y", "Application/JSON; q=", "text/html",
	} {
		f.Add(accept)
	}
	f.Fuzz(func(t *testing.T, accept string) {
		selected := selectMergeableTypes([]string{accept})
		if selected == "" || !strings.Contains(accept, "\n") && strings.ContainsAny(selected, "\r\n") {
			t.Errorf("%q became %q", accept, selected)
		}
		for mediaRange := range strings.SplitSeq(selected, ",") {
			if _, err := newMerger(mediaRange); err != nil {
				t.Errorf("%q became %q: %v", accept, selected, err)
			}
		}
		if again := selectMergeableTypes([]string{selected}); again != selected {
			t.Errorf("%q became %q, and then %q", accept, selected, again)
		}
	})
}
