package cli

import (
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"croft.dev/croft/internal/network/plan"
)

// formatCLI is the output format of shell commands.
const formatCLI format = "cli"

func newNetworks(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "networks",
		Short: "Plan secondary networks",
	}
	c.AddCommand(newNetworksPlan(a))
	return c
}

func newNetworksPlan(a *app) *cobra.Command {
	var (
		files  fileFlags
		output format
	)
	c := &cobra.Command{
		Use:   "plan -f FILE",
		Short: "Show the AWS resources and the pods of a file's secondary networks",
		Long: `Show the AWS resources that a file's secondary networks need, and the maximum number
of their pods, without a cluster and without an account: the CIDR reservations of the
subnets, the addresses for pods in them, and for each pool the network interfaces and
addresses of its instance types.

-o cli, cloudformation and terraform print the reservations. Create them before the
first pod: AWS then assigns their addresses only on explicit request.

The command refuses, with the line of the file, networks that overlap, a reservation
that contains the gateway or leaves no address for the nodes, and instance types with
too few network interfaces.`,
		Example: `  croft networks plan -f croft.yaml
  croft networks plan -f croft.yaml -o cli | sh -e
  croft networks plan -f croft.yaml -o cloudformation > reservations.yaml
  croft networks plan -f croft.yaml -o terraform > reservations.tf.json`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			e, err := files.buildEstate(a.in)
			if err != nil {
				return err
			}
			p := plan.Build(e)
			if len(p.Ranges) == 0 {
				printSafely(a.err, "croft: the file has no secondaryNetworks\n")
			}
			return a.printNetworksPlan(&p, output)
		},
	}
	files.addFlags(c)
	output.addFlags(c, formatTable, formatCLI, formatCloudFormation, formatTerraform, formatJSON)
	return c
}

func (a *app) printNetworksPlan(p *plan.Plan, output format) error {
	switch output {
	case formatCLI:
		_, err := io.WriteString(a.out, p.Commands())
		return toFailure(err)
	case formatCloudFormation:
		return formatYAML.print(a.out, p.CloudFormation())
	case formatTerraform:
		return formatJSON.print(a.out, p.Terraform())
	case formatJSON:
		return formatJSON.print(a.out, p)
	default:
		a.printPlanTables(p)
		return nil
	}
}

func (a *app) printPlanTables(p *plan.Plan) {
	var rows [][]string
	for i := range p.Ranges {
		r := &p.Ranges[i]
		rows = append(rows, []string{
			r.Network, r.Zone, r.Subnet, r.CIDR, r.PodCIDR, dashIfEmpty(r.Gateway), dashIfEmpty(strings.Join(r.Excluded, " ")),
			strconv.FormatUint(r.Pods, 10), strconv.FormatUint(r.Nodes, 10), dashIfEmpty(strings.Join(r.Tenants, " ")),
		})
	}
	if len(rows) > 0 {
		printTable(a.out, []string{"NETWORK", "ZONE", "SUBNET", "CIDR", "RESERVATION", "GATEWAY", "EXCLUDED", "PODS", "NODES", "TENANTS"}, rows)
	}
	if rows = buildPoolRows(p.Pools); len(rows) > 0 {
		printSafely(a.out, "\n")
		printTable(a.out, []string{"POOL", "NETWORKS", "ZONES", "TYPE", "INTERFACES", "NEEDED", "LEFT FOR CNI", "PODS/NODE", "WITH PREFIXES"}, rows)
	}
}

func buildPoolRows(pools []plan.Pool) [][]string {
	var rows [][]string
	for i := range pools {
		pool := &pools[i]
		begin := []string{pool.Name, strings.Join(pool.Networks, " "), strings.Join(pool.Zones, " ")}
		if pool.Choices != "" {
			rows = append(rows, append(begin, "any: "+pool.Choices, "-", strconv.Itoa(len(pool.Networks)+1), "-", "-", "-"))
		}
		for _, t := range pool.Types {
			row := append(slices.Clone(begin), t.Name)
			for _, n := range []int{t.Interfaces, t.Needed, t.Left, t.Pods, t.WithPrefixes} {
				cell := strconv.Itoa(n)
				if !t.Known && n != t.Needed {
					cell = "?"
				}
				row = append(row, cell)
			}
			rows = append(rows, row)
		}
	}
	return rows
}
