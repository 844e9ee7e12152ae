// Package version contains the version of croft.
package version

import "runtime/debug"

// Version is set when a release is linked (-ldflags -X).
var Version = ""

// MutationScore is the fraction of the walls' parts whose removal an attack in `make mutants`
// detected, from 0 to 1. It is set with Version, and empty in other builds.
var MutationScore = ""

// String returns the version of this binary: the release's, or else Go's build information
// about the module or the commit.
func String() string {
	if Version != "" {
		return Version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return "devel-" + s.Value[:min(12, len(s.Value))]
		}
	}
	return "devel"
}
