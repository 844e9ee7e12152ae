package cli

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"croft.dev/croft/internal/declare/wording"
	"croft.dev/croft/internal/diagnose/me"
)

func newMe(a *app) *cobra.Command {
	var (
		namespace string
		output    format
	)
	c := &cobra.Command{
		Use:   "me",
		Short: "Show your tenant: namespaces, roles, quota, domains, classes, pools",
		Long: `Show your tenant: its namespaces and your roles in them, quota and its use, the
workloads whose pods are refused, domains, pools, the classes that you may name, and your
restrictions.

The command reads with your own rights; the role viewer is enough. Since you may not list
namespaces, name one of your tenant's with -n, or in the kubeconfig's context. croft finds
the others.`,
		Example: "  croft me -n shop\n  croft me -n shop -o yaml",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if namespace == "" {
				namespace = a.currentNamespace()
			}
			return a.runMe(cmd.Context(), namespace, output)
		},
	}
	c.Flags().StringVarP(&namespace, "namespace", "n", "", "a namespace of your tenant; by default the namespace of the kubeconfig's context")
	output.addFlags(c, formatTable, formatJSON, formatYAML)
	return c
}

func (a *app) runMe(ctx context.Context, namespace string, output format) error {
	c, err := a.newClient()
	if err != nil {
		return toFailure(err)
	}
	m, err := me.Gather(ctx, c, namespace)
	var elsewhere *me.NotTenantsError
	switch {
	case errors.As(err, &elsewhere):
		return err
	case err != nil:
		return toFailure(explainUnreachable(err))
	case output != formatTable:
		return output.print(a.out, m)
	}
	a.printMe(m)
	return nil
}

func (a *app) printMe(m *me.Me) {
	r := &m.Rules
	header, cells := []string{"TENANT", "YOU", "POOLS", "EGRESS"}, []string{m.Tenant, m.User, formatList(r.Pools), string(r.Egress)}
	if m.Declared != nil && m.Declared.Contact != "" {
		header, cells = append(header, "CONTACT"), append(cells, m.Declared.Contact)
	}
	printTable(a.out, header, [][]string{cells})

	var rows, quota [][]string
	for _, n := range m.Namespaces {
		rows = append(rows, []string{n.Name, formatList(n.Roles), formatList(n.Abilities)})
		for _, u := range n.Quota {
			// Object counts are shown only if they are nearly used up.
			if !u.IsObjectCount() || u.IsNearlyUsedUp() {
				quota = append(quota, []string{n.Name, string(u.Resource), u.Used, u.Hard, strconv.Itoa(u.Percent) + "%"})
			}
		}
	}
	printSafely(a.out, "\n")
	printTable(a.out, []string{"NAMESPACE", "YOUR ROLES", "YOU MAY"}, rows)
	if len(quota) > 0 {
		printSafely(a.out, "\n")
		printTable(a.out, []string{"NAMESPACE", "QUOTA", "USED", "OF", ""}, quota)
	}

	if len(m.Ending) > 0 {
		printSafely(a.out, "\n")
		rows = nil
		for _, e := range m.Ending {
			rows = append(rows, []string{e.Namespace, e.Until.UTC().Format(time.RFC3339), "write a later spec.until into TenantNamespace " + e.Request})
		}
		printTable(a.out, []string{"NAMESPACE", "IS DELETED AT", "TO KEEP IT"}, rows)
	}

	if len(m.Refused) > 0 {
		printSafely(a.out, "\n")
		a.printRefused(m.Refused)
	}

	printSafely(a.out, "\n")
	rows = nil
	for _, allowed := range m.ListAllowances() {
		rows = append(rows, []string{allowed.Name, allowed.Values})
	}
	printTable(a.out, []string{"YOU MAY USE", ""}, rows)
	printSafely(a.out, "\nYou may not have:\n")
	for _, line := range m.Restrictions {
		printSafely(a.out, "  - %s\n", line)
	}
}

func formatList(names []string) string { return wording.JoinNames(names) }
