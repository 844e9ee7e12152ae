package cli

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"croft.dev/croft/internal/me"
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

It reads with your own rights; the role viewer is enough. You may not list namespaces:
name one of your tenant's with -n, or in the kubeconfig's context, and croft finds the
others.`,
		Example: "  croft me -n shop\n  croft me -n shop -o yaml",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if namespace == "" {
				namespace = a.namespace()
			}
			return a.me(cmd.Context(), namespace, output)
		},
	}
	c.Flags().StringVarP(&namespace, "namespace", "n", "", "a namespace of your tenant; that of the kubeconfig's context if none is given")
	output.add(c, formatTable, formatJSON, formatYAML)
	return c
}

func (a *app) me(ctx context.Context, namespace string, output format) error {
	c, err := a.client()
	if err != nil {
		return failed(err)
	}
	m, err := me.Gather(ctx, c, namespace)
	var elsewhere *me.NotTenantsError
	switch {
	case errors.As(err, &elsewhere):
		return err
	case err != nil:
		return failed(unreachable(err))
	case output != formatTable:
		return output.print(a.out, m)
	}
	a.printMe(m)
	return nil
}

func (a *app) printMe(m *me.Me) {
	r := &m.Rules
	table(a.out, []string{"TENANT", "YOU", "POOLS", "EGRESS"},
		[][]string{{m.Tenant, m.User, list(r.Pools), string(r.Egress)}})

	var rows, quota [][]string
	for _, n := range m.Namespaces {
		rows = append(rows, []string{n.Name, list(n.Roles), list(n.May)})
		for _, u := range n.Quota {
			// Object counts are shown only if they are nearly used up.
			if !u.Counts() || u.Percent >= 80 {
				quota = append(quota, []string{n.Name, string(u.Resource), u.Used, u.Hard, strconv.Itoa(u.Percent) + "%"})
			}
		}
	}
	say(a.out, "\n")
	table(a.out, []string{"NAMESPACE", "YOUR ROLES", "YOU MAY"}, rows)
	if len(quota) > 0 {
		say(a.out, "\n")
		table(a.out, []string{"NAMESPACE", "QUOTA", "USED", "OF", ""}, quota)
	}

	if len(m.Refused) > 0 {
		say(a.out, "\n")
		a.printRefused(m.Refused)
	}

	say(a.out, "\n")
	table(a.out, []string{"YOU MAY USE", ""}, [][]string{
		{"domains", list(r.Domains)},
		{"images from", allowed(r.Registries, nil)},
		{"Service types", list(words(r.ServiceTypes))},
		{"StorageClasses", allowed(r.StorageClasses, m.Classes["storageClasses"])},
		{"IngressClasses", allowed(r.IngressClasses, m.Classes["ingressClasses"])},
		{"GatewayClasses", allowed(r.GatewayClasses, m.Classes["gatewayClasses"])},
		{"issuers", allowed(r.Issuers, nil)},
		{"Flux sources at", allowed(r.SourceHosts, nil)},
		{"PriorityClasses", allowed(r.PriorityClasses, m.Classes["priorityClasses"])},
		{"RuntimeClasses", allowed(r.RuntimeClasses, m.Classes["runtimeClasses"])},
	})
	say(a.out, "\nYou may not have:\n")
	for _, line := range m.MayNot {
		say(a.out, "  - %s\n", line)
	}
}

func list(names []string) string {
	names = slices.Clone(names)
	for i, n := range names {
		if n == "" {
			names[i] = "(none named)"
		}
	}
	return dash(strings.Join(names, ", "))
}

// allowed formats a list in which "*" means any name, together with the existing names.
func allowed(names, there []string) string {
	switch {
	case !slices.Contains(names, "*"):
		return list(names)
	case len(there) == 0:
		return "any"
	default:
		return "any of " + strings.Join(there, ", ")
	}
}

func words[T ~string](all []T) []string {
	names := make([]string, len(all))
	for i, w := range all {
		names[i] = string(w)
	}
	return names
}
