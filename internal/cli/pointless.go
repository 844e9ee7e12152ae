package cli

import (
	"fmt"

	"github.com/spf13/cobra"
)

// refusePointlessFlags refuses flags that would have no effect, since the user expects one.
func refusePointlessFlags(c *cobra.Command, why string, areIgnored func() bool, flags ...string) {
	run := c.RunE
	c.RunE = func(cmd *cobra.Command, args []string) error {
		for _, flag := range flags {
			if f := cmd.Flag(flag); f != nil && f.Changed && areIgnored() {
				return fmt.Errorf("--%s has no effect here: %s", flag, why)
			}
		}
		return run(cmd, args)
	}
}
