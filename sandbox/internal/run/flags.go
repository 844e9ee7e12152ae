package run

import "github.com/spf13/pflag"

// linkedFlags are the flags that linked packages register globally when they are
// initialised. Kubernetes' components read theirs there; every other command of this
// program would show them, or clash with them.
var linkedFlags = pflag.CommandLine

// HideLinkedFlags keeps the linked packages' flags from the commands of this program, to
// all of which cobra adds global flags.
func HideLinkedFlags() {
	pflag.CommandLine = pflag.NewFlagSet("", pflag.ContinueOnError)
}

func showLinkedFlags() { pflag.CommandLine = linkedFlags }
