package cli

import (
	"github.com/spf13/cobra"

	"croft.dev/croft/internal/wall"
)

func newRender(a *app) *cobra.Command {
	var (
		files  fileFlags
		output format
	)
	c := &cobra.Command{
		Use:   "render -f FILE",
		Short: "Print every object that a file stands for, without a cluster",
		Long: `Print every object that a file stands for: for a look, or for a cluster that is
kept by GitOps without croft's operator. The same file gives the same bytes.

The cluster needs croft's kinds (croft install) and Karpenter's.`,
		Example: "  croft render -f croft.yaml | kubectl apply --server-side -f -",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			e, err := files.build(a.in)
			if err != nil {
				return err
			}
			return printObjects(a.out, wall.Objects(e), output)
		},
	}
	files.add(c)
	output.add(c, formatYAML, formatJSON)
	return c
}
