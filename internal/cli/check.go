package cli

import "github.com/spf13/cobra"

func newCheck(a *app) *cobra.Command {
	var files fileFlags
	c := &cobra.Command{
		Use:   "check -f FILE",
		Short: "Say everything that is wrong with a file, without a cluster",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			e, err := files.build(a.in)
			if err != nil {
				return err
			}
			say(a.out, "good: %s, %s\n", count(len(e.Tenants), "tenant"), count(len(e.Pools), "pool"))
			return nil
		},
	}
	files.add(c)
	return c
}
