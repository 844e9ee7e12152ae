package component

import (
	"slices"
	"strings"
	"testing"
)

// TestMemory computes the memory of machines and containers, of which components may use a
// quarter each before Go collects more often.
func TestMemory(t *testing.T) {
	const gib = int64(1 << 30)
	machine := "MemTotal:       25165824 kB\nMemFree:          116480 kB\n" // 24 GiB
	for _, test := range []struct {
		name, meminfo, cgroup string
		want                  int64
	}{
		{"a machine", machine, "", 24 * gib},
		{"a container without a limit", machine, "max\n", 24 * gib},
		{"a container", machine, "8589934592\n", 8 * gib},
		{"a container with a limit above the machine's memory", machine, "99999999999999\n", 24 * gib},
		{"a small machine", "MemTotal: 2097152 kB\n", "", 4 * gib},
		{"a machine without meminfo", "", "", 16 * gib},
		{"a file of another form", "MemTotal: much kB\n", "much", 16 * gib},
	} {
		if got := computeMemory(test.meminfo, test.cgroup); got != test.want {
			t.Errorf("%s: %d, want %d", test.name, got, test.want)
		}
	}
	if env := collectRarely(); !slices.ContainsFunc(env, func(v string) bool { return strings.HasPrefix(v, "GOMEMLIMIT=") && !strings.HasSuffix(v, "GiB") }) {
		t.Errorf("environment %v", env)
	}
}
