package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"croft.dev/croft/internal/declare/manifest"
	"croft.dev/croft/internal/declare/wording"
)

func newStatus(a *app) *cobra.Command {
	var (
		output format
		files  subjectFlags
		pick   selection
	)
	c := &cobra.Command{
		Use:   "status [tenant/NAME | pool/NAME]...",
		Short: "Show the operator, the platform, its pools, tenants and walls at a glance",
		Long: `Show the operator, the platform, its pools, tenants and walls at a glance. The
operator's conditions count only while it runs: without it, READY is Unknown. The walls
are compared with the objects in the cluster.

CPU, MEMORY and PODS of a tenant are its namespaces' use of their quota. REFUSED is the
number of its workloads whose pods the API server refuses. Pools and tenants that are not
Ready come first. Namespaces that were retained when their tenant was deleted are
RETAINED. If you name tenants or pools, the command shows only these, with the use of
each namespace, and the workload that was refused first. With -o wide, or if you name
tenants, OWNER and CONTACT are the tenants' owners and how to reach them.

With -f, the command shows the walls of a file that another tool than croft's operator
applies, as with croft render | kubectl apply.

Exit status 0 means that the operator runs, that everything is Ready, and that every
object of the walls is in place; 1 that an object is missing, changed or not Ready, that
no operator runs, or that you may not read everything. If you name tenants or pools,
only these count.`,
		Example: `  croft status
  croft status tenant/shop pool/apps
  croft status --not-ready
  croft status -o wide`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.newClient()
			if err != nil {
				return toFailure(err)
			}
			look, err := a.readOverview(cmd.Context(), c, &files, &pick)
			if err != nil {
				return err
			}
			look.wide = output == formatWide
			if output == formatTable || look.wide {
				a.printStatus(look)
			} else if err := output.print(a.out, look); err != nil {
				return err
			}
			if !look.isGood() {
				return errReported()
			}
			return nil
		},
	}
	files.addFlags(c)
	pick.addFlags(c)
	output.addFlags(c, formatTable, formatWide, formatJSON, formatYAML)
	return c
}

func (a *app) printStatus(look *overview) {
	printSafely(a.out, "OPERATOR   %s\n", look.Operator.Summary)
	if look.Operator.Skew != "" {
		printSafely(a.out, "SKEW       %s\n", look.Operator.Skew)
	}
	printSafely(a.out, "\n")
	if look.hasNames() {
		a.printDeclared(look)
		return
	}
	ready, why := look.evaluateReady("Platform", look.Platform.Name, look.Platform.Generation, look.Platform.Status.Status)
	header, cells := []string{"PLATFORM", "READY", "REASON"}, []string{look.Platform.Spec.ClusterName, ready, why}
	if !look.rendered {
		header, cells = append(header, "AGE"), append(cells, formatAge(look.Platform.CreationTimestamp.Time))
	}
	printTable(a.out, header, [][]string{cells})

	var rows [][]string
	for _, w := range look.Walls {
		rows = append(rows, []string{w.Name, fmt.Sprintf("%d/%d", w.InPlace, w.Desired), shortenToFirst(w.Missing), shortenToFirst(w.Changed), shortenToFirst(w.Unreadable)})
	}
	printSafely(a.out, "\n")
	printTable(a.out, []string{"WALL", "IN PLACE", "MISSING", "CHANGED", "UNREADABLE"}, rows)

	rows = nil
	for _, n := range look.Networks {
		ready, why := look.evaluateReady("SecondaryNetwork", n.Name, n.Generation, n.Status)
		rows = append(rows, []string{n.Name, ready, why, formatAge(n.CreationTimestamp.Time)})
	}
	if len(rows) > 0 {
		printSafely(a.out, "\n")
		printTable(a.out, []string{"SECONDARY NETWORK", "READY", "REASON", "AGE"}, rows)
	}

	a.printDeclared(look)
}

// shortenToFirst returns the first of several names and the number of the others.
func shortenToFirst(names []string) string { return dashIfEmpty(wording.FormatFirst(names, 1)) }

// listShares returns the shares of declared quotas, by namespace.
func listShares(live *manifest.Declaration) [][]string {
	var rows [][]string
	for _, t := range live.Tenants {
		if t.Spec.Quota == nil && live.Platforms[0].Spec.TenantDefaults.Quota == nil {
			continue
		}
		for _, entry := range t.Status.Shares {
			var parts []string
			for name, amount := range entry.Hard {
				parts = append(parts, string(name)+"="+amount.String())
			}
			slices.Sort(parts)
			rows = append(rows, []string{t.Name, entry.Namespace, strings.Join(parts, ",")})
		}
	}
	return rows
}

func dashIfZero(q string) string {
	if q == "0" {
		return "-"
	}
	return q
}
