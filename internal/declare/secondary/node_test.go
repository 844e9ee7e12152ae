package secondary

import (
	"slices"
	"strings"
	"testing"
)

// FuzzReadNodeNetworks fails if an annotation on a node leads to a path outside of croft's
// directory, or changes when it is written again.
func FuzzReadNodeNetworks(f *testing.F) {
	for _, text := range []string{`[{"network":"n3","mac":"0A:00:00:00:00:01","mtu":9000,"zoneFile":"x"}]`, `[{"network":"../n3","mac":"0a:00:00:00:00:01"}]`, "null", `[{"mac":1}]`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		networks, err := ReadNodeNetworks(text)
		if err != nil {
			t.Skip()
		}
		for _, n := range networks {
			if path := ZoneFilePath(n.Network); strings.Contains(path, "..") || strings.Count(path, "/") != strings.Count(ZoneFiles, "/") {
				t.Errorf("network %q leads to %s", n.Network, path)
			}
		}
		again, err := ReadNodeNetworks(WriteNodeNetworks(networks))
		if err != nil || !slices.Equal(networks, again) {
			t.Errorf("%v became %v (%v)", networks, again, err)
		}
	})
}
