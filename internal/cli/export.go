package cli

import (
	"bufio"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"croft.dev/croft/internal/access/backstage"
)

func newExport(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "export",
		Short: "Describe a file's tenants to other tools",
	}
	c.AddCommand(newExportBackstage(a))
	return c
}

func newExportBackstage(a *app) *cobra.Command {
	var (
		files  fileFlags
		output format
	)
	c := &cobra.Command{
		Use:   "backstage -f FILE",
		Short: "Print a Backstage catalog of a file's tenants, without a cluster",
		Long: `Print a Backstage catalog of a file's tenants, without a cluster: a Group for each team, a System
for each tenant, and a Component for each of its declared namespaces, with the annotations by
which Backstage's Kubernetes plugin shows the namespace's workloads.

A tenant belongs to the group of its first operator, or else of its first access. Let your
identity provider's own Groups replace the printed ones if Backstage imports them: the names are
the groups' names, with hyphens for characters other than letters and digits.`,
		Example: `  croft export backstage -f croft.yaml > catalog-info.yaml`,
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			d, e, err := files.loadEstate(a.in)
			if err != nil {
				return err
			}
			contacts := map[string]string{}
			for i := range d.Tenants {
				contacts[d.Tenants[i].Name] = d.Tenants[i].Spec.Contact
			}
			entities, err := backstage.List(e, contacts)
			if err != nil {
				return err
			}
			if output == formatJSON {
				return output.print(a.out, entities)
			}
			buffered := bufio.NewWriter(a.out)
			for _, entity := range entities {
				data, err := yaml.Marshal(entity)
				if err != nil {
					return toFailure(err)
				}
				printSafely(buffered, "---\n%s", data)
			}
			return toFailure(buffered.Flush())
		},
	}
	files.addFlags(c)
	output.addFlags(c, formatYAML, formatJSON)
	return c
}
