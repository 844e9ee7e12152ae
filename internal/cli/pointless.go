package cli

import (
	"fmt"

	"github.com/spf13/cobra"
)

// pointless refuses a flag that would have no effect, since the user expects one.
func pointless(c *cobra.Command, flag, why string, ignored func() bool) {
	run := c.RunE
	c.RunE = func(cmd *cobra.Command, args []string) error {
		if f := cmd.Flag(flag); f != nil && f.Changed && ignored() {
			return fmt.Errorf("--%s has no effect here: %s", flag, why)
		}
		return run(cmd, args)
	}
}
