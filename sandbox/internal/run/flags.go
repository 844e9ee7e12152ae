package run

import "github.com/spf13/pflag"

// linkedFlags are those that the packages linked in here register for the whole
// program when they are initialised. Kubernetes' components look theirs up
// there; every other command of this program would show, or clash with, them.
var linkedFlags = pflag.CommandLine

// HideLinkedFlags keeps the linked packages' flags from the commands of this
// program, all of which cobra adds the program's flags to.
func HideLinkedFlags() {
	pflag.CommandLine = pflag.NewFlagSet("", pflag.ContinueOnError)
}

func showLinkedFlags() { pflag.CommandLine = linkedFlags }
