package cli

import (
	"io"

	"github.com/spf13/cobra"

	"croft.dev/croft/internal/declare/document"
	"croft.dev/croft/internal/declare/thresholds"
	"croft.dev/croft/internal/declare/wording"
)

func newCheck(a *app) *cobra.Command {
	var (
		files  fileFlags
		strict bool
		output format
	)
	c := &cobra.Command{
		Use:   "check -f FILE",
		Short: "List all errors in a file, without a cluster",
		Long: `List all errors in a file, without a cluster.

The API server and Karpenter accept a file without errors. Likely mistakes are
warnings on standard error; they fail the command only with --strict. Notes, about
effects that are not obvious, never do. The exit status is 0 if the file is good, and
2 otherwise.

With -o json or yaml, standard output gets one object:

  good: false
  tenants: 2            # number of good ones; 0 if a file cannot be parsed
  pools: 1
  problems:
  - severity: Error     # Warning or Note
    file: croft.yaml
    line: 3             # 0 if the problem has no line
    path: tenants.shop.pool
    object: Tenant/shop
    field: spec.pool
    message: there is no pool app; did you mean apps?

Files that cannot be read are reported on standard error.`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			e, err := files.buildEstate(a.in)
			var warnings document.Problems
			if e != nil {
				warnings = e.Warnings
			}
			if mistakes := warnings.Without(document.SeverityNote); err == nil && strict && len(mistakes) > 0 {
				err = &reportedBadInput{mistakes}
			}
			if output != formatText {
				return a.printCheck(e, warnings, err, output)
			}
			a.printWarnings(warnings)
			if err != nil {
				return err
			}
			printSafely(a.out, "good: %s, %s\n", wording.FormatCount(len(e.Tenants), "tenant"), wording.FormatCount(len(e.Pools), "pool"))
			printThreshold(a.out, e.CountNamespaces())
			return nil
		},
	}
	files.addFlags(c)
	output.addFlags(c, formatText, formatJSON, formatYAML)
	c.Flags().BoolVar(&strict, "strict", false, "treat warnings as errors")
	return c
}

// printThreshold prints the number of namespaces if it is near the number that Kubernetes is tested with. A
// larger number is a warning of the estate.
func printThreshold(w io.Writer, namespaces int) {
	if t := thresholds.Namespaces; t.IsAbove(namespaces, 50) && !t.IsAbove(namespaces, 100) {
		printSafely(w, "%s, with which Kubernetes is tested in one cluster (docs/reference/sizing.md)\n", t.Format(namespaces))
	}
}
