package cli

import (
	"github.com/spf13/cobra"

	"croft.dev/croft/internal/apply"
	"croft.dev/croft/internal/wall"
)

func newDiff(a *app) *cobra.Command {
	var files fileFlags
	c := &cobra.Command{
		Use:   "diff -f FILE",
		Short: "Show what applying a file would change in the cluster",
		Long: `Show what applying a file would change in the cluster: the declared objects and
everything that croft would make of them. Exit status 0 means no difference, 1 that
there are some (or that something failed), as with kubectl diff.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, file, e, err := a.propose(cmd.Context(), &files)
			if err != nil {
				return err
			}
			differences, err := apply.New(c).Diff(cmd.Context(), append(file.Objects(), wall.Objects(e)...)...)
			say(a.out, "%s", differences)
			if err != nil {
				return failed(unreachable(err))
			}
			if differences != "" {
				return errTold()
			}
			return nil
		},
	}
	files.add(c)
	return c
}
