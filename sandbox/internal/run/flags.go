package run

import "github.com/spf13/pflag"

// linkedFlags are the flags that linked packages register globally when they are
// initialised. Kubernetes' components need them; every other command of this program would
// show them, or conflict with them.
var linkedFlags = pflag.CommandLine

// HideLinkedFlags hides the linked packages' flags from the commands of this program: cobra
// adds global flags to every command.
func HideLinkedFlags() {
	pflag.CommandLine = pflag.NewFlagSet("", pflag.ContinueOnError)
}

func showLinkedFlags() { pflag.CommandLine = linkedFlags }
