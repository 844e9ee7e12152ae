// Package version says which croft this is.
package version

import "runtime/debug"

// Version is set when a release is linked (-ldflags -X).
var Version = ""

// MutationScore is the part of what the walls are made of whose absence `make test` saw an
// attack notice, from 0 to 1; set with Version, and empty in other builds.
var MutationScore = ""

// String is the version of this binary: the release's, otherwise what Go knows
// of the module or the commit it was built from.
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
