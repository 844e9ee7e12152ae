package cli

import (
	"runtime"

	"github.com/spf13/cobra"

	"croft.dev/croft/internal/version"
)

func newVersion(a *app) *cobra.Command {
	var output format
	c := &cobra.Command{
		Use:   "version",
		Short: "Print croft's version",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			v := map[string]string{"version": version.String(), "go": runtime.Version(), "platform": runtime.GOOS + "/" + runtime.GOARCH}
			if output != formatTable {
				return output.print(a.out, v)
			}
			say(a.out, "croft %s (%s, %s)\n", v["version"], v["go"], v["platform"])
			return nil
		},
	}
	output.add(c, formatTable, formatJSON, formatYAML)
	return c
}
