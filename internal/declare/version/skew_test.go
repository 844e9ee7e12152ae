package version_test

import (
	"strings"
	"testing"

	"croft.dev/croft/internal/declare/version"
)

// TestSkew fails if an older croft is mistaken for a newer one, or a build from a commit
// for a release.
func TestSkew(t *testing.T) {
	for _, test := range []struct {
		this, operator    string
		older, olderMinor bool
		wantText          string
	}{
		{"v0.1.0", "v0.1.0", false, false, ""},
		{"v0.1.0", "", false, false, ""},
		{"v0.1.0", "v0.1.1", true, false, "use the operator's version"},
		{"v0.1.9", "v0.2.0", true, true, "use the operator's version"},
		{"v0.9.0", "v0.10.0", true, true, "use the operator's version"},
		{"v0.9.0", "v1.0.0", true, true, "use the operator's version"},
		{"v0.2.0-rc.1", "v0.2.0", true, false, "use the operator's version"},
		{"v0.2.0", "v0.2.0-rc.1", false, false, "upgrade the operator"},
		{"v0.2.0", "v0.1.0", false, false, "upgrade the operator"},
		{"0.1.0", "v0.2.0", true, true, "use the operator's version"},
		{"v0.1.0+dirty", "v0.1.0", false, false, "different objects"},
		{"devel", "v0.2.0", false, false, "different objects"},
		{"v0.2.0", "devel-95ea191f0a1b", false, false, "different objects"},
		{"v0.0.0-20261125011530-95ea191f0a1b", "v0.2.0", false, false, "different objects"},
		{"v0.2.1-0.20261125011530-95ea191f0a1b+dirty", "v0.3.0", false, false, "different objects"},
		{"v0.2.1-rc.1.0.20261125011530-95ea191f0a1b", "v0.3.0", false, false, "different objects"},
	} {
		t.Run(test.this+" and "+test.operator, func(t *testing.T) {
			if got := version.IsOlder(test.this, test.operator); got != test.older {
				t.Errorf("older: %t", got)
			}
			if got := version.IsOlderMinor(test.this, test.operator); got != test.olderMinor {
				t.Errorf("older by more than a patch: %t", got)
			}
			if got := version.Skew(test.this, test.operator); !strings.Contains(got, test.wantText) || (got == "") != (test.wantText == "") {
				t.Errorf("got %q, want %q", got, test.wantText)
			}
		})
	}
}
