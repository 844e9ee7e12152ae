package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"croft.dev/croft/sandbox/internal/cloud"
	"croft.dev/croft/sandbox/internal/cloud/account"
	"croft.dev/croft/sandbox/internal/component"
)

func newAWS(g *global) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "aws",
		Short: "Inspect the simulated AWS account, and inject faults",
		Long: `Inspect the simulated AWS account of a sandbox that was started with
--with aws, and inject faults.

  croft-sandbox aws instances
  croft-sandbox aws calls --action ec2:CreateLaunchTemplate -o json
  croft-sandbox aws fault no-capacity --type m5.large --times 3
  croft-sandbox aws interrupt i-0123456789abcdef0
  eval "$(croft-sandbox aws env)"; aws ec2 describe-instances`,
		Args: checkArgs(cobra.NoArgs),
	}
	cmd.AddCommand(newAWSInstances(g), newAWSCalls(g), newAWSFault(g), newAWSFaults(g), newAWSClear(g), newAWSInterrupt(g), newAWSReserve(g), newAWSSubnet(g), newAWSInterfaces(g), newAWSLeft(g), newAWSEnv(g))
	return cmd
}

// dialAccount returns a client of the simulated account of a running sandbox.
func (g *global) dialAccount(ctx context.Context) (cloud.Client, error) {
	h, client, err := g.dialSupervisor()
	if err != nil {
		return cloud.Client{}, err
	}
	statuses, err := client.GetStatuses(ctx)
	if err != nil {
		return cloud.Client{}, err
	}
	for _, s := range statuses {
		if s.Name == component.Cloud {
			if s.Address == "" {
				return cloud.Client{}, fmt.Errorf("the simulated AWS account does not answer yet: see `croft-sandbox status`")
			}
			return cloud.Client{Address: s.Address}, nil
		}
	}
	return cloud.Client{}, usageError{fmt.Errorf("the sandbox in %s has no AWS account: start one with `croft-sandbox up --with aws`", h.Dir)}
}

// newListing returns a command that lists objects of the account, as a table or as JSON.
func newListing[T any](g *global, use, short string, get func(context.Context, cloud.Client) ([]T, error), head string, row func(T) []any) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use: use, Short: short, Args: checkArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if output != "table" && output != "json" {
				return usageError{fmt.Errorf("unknown output %q: choose table or json", output)}
			}
			client, err := g.dialAccount(cmd.Context())
			if err != nil {
				return err
			}
			list, err := get(cmd.Context(), client)
			if err != nil {
				return err
			}
			if output == "json" {
				encoder := json.NewEncoder(cmd.OutOrStdout())
				encoder.SetIndent("", "  ")
				return encoder.Encode(list)
			}
			w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 3, ' ', 0)
			_, _ = fmt.Fprintln(w, strings.ReplaceAll(head, " ", "\t"))
			for _, one := range list {
				cells := row(one)
				_, _ = fmt.Fprintf(w, strings.TrimSuffix(strings.Repeat("%v\t", len(cells)), "\t")+"\n", cells...)
			}
			return w.Flush() // reports the errors of the writes before
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "table", "table or json")
	return cmd
}

func newAWSInstances(g *global) *cobra.Command {
	return newListing(g, "instances", "List the instances",
		func(ctx context.Context, c cloud.Client) ([]account.Instance, error) {
			holding, err := c.GetHolding(ctx)
			return holding.Instances, err
		},
		"INSTANCE TYPE ZONE CAPACITY STATE NODEPOOL NODE AGE", func(i account.Instance) []any {
			return []any{i.ID, i.Type, i.Zone, i.Capacity, i.State, i.Tags["karpenter.sh/nodepool"],
				i.DNSName(component.AWSRegion), time.Since(i.Launched).Round(time.Second)}
		})
}

func newAWSCalls(g *global) *cobra.Command {
	var action string
	cmd := newListing(g, "calls", "List the calls to AWS, the newest last",
		func(ctx context.Context, c cloud.Client) ([]cloud.Call, error) {
			calls, err := c.ListCalls(ctx)
			return slices.DeleteFunc(calls, func(c cloud.Call) bool {
				return action != "" && !strings.EqualFold(action, c.Service+":"+c.Action)
			}), err
		},
		"TIME CALL ANSWER", func(c cloud.Call) []any {
			return []any{c.At.Format(time.TimeOnly), c.Service + ":" + c.Action, cmp.Or(c.Error, "ok")}
		})
	cmd.Flags().StringVar(&action, "action", "", "only calls of this kind, such as ec2:CreateFleet")
	return cmd
}

func newAWSFaults(g *global) *cobra.Command {
	return newListing(g, "faults", "List the active faults",
		func(ctx context.Context, c cloud.Client) ([]account.Fault, error) { return c.ListFaults(ctx) },
		"FAULT KIND LEFT WHEN", func(f account.Fault) []any {
			left := "always"
			if f.Times > 0 {
				left = fmt.Sprint(f.Times)
			}
			return []any{f.ID, f.Kind, left, f.Case}
		})
}

func newAWSFault(g *global) *cobra.Command {
	var f account.Fault
	var list strings.Builder
	for _, kind := range slices.Sorted(maps.Keys(account.Faults)) {
		fmt.Fprintf(&list, "  %-18s %s\n", kind, account.Faults[kind])
	}
	cmd := &cobra.Command{
		Use:   "fault KIND",
		Short: "Inject a fault",
		Long:  "Inject a fault. It stays active until `croft-sandbox aws clear`, or until it has occurred --times:\n\n" + list.String(),
		Args:  checkArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			f.Kind = account.FaultKind(args[0])
			if _, ok := account.Faults[f.Kind]; !ok {
				return usageError{fmt.Errorf("there is no fault %q: choose from %s", f.Kind, joinFaultKinds())}
			}
			client, err := g.dialAccount(cmd.Context())
			if err != nil {
				return err
			}
			added, err := client.AddFault(cmd.Context(), f)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), added.ID)
			return err
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.Type, "type", "", "only for this type of instance")
	flags.StringVar(&f.Zone, "zone", "", "only in this zone")
	flags.StringVar(&f.Capacity, "capacity", "", "only for on-demand, spot or reserved")
	flags.StringVar(&f.Subnet, "subnet", "", "only in this subnet")
	flags.StringVar(&f.Action, "action", "", "only for this call, such as ec2:CreateFleet")
	flags.IntVar(&f.Times, "times", 0, "how many times the fault occurs; 0 for no limit")
	flags.IntVar(&f.Limit, "limit", 0, "for vcpu-quota: the quota")
	flags.DurationVar(&f.Delay, "delay", 5*time.Second, "for slow: the delay of answers; for stale: the time until new interfaces are listed")
	flags.BoolVar(&f.NodeRole, "as-node", false, "for unauthorized: the caller has the role of a node, as if the controller had no role of its own")
	flags.BoolVar(&f.ExplicitDeny, "explicit-deny", false, "for unauthorized: a policy denies the call explicitly; otherwise no policy allows it")
	return cmd
}

func joinFaultKinds() string {
	var kinds []string
	for _, kind := range slices.Sorted(maps.Keys(account.Faults)) {
		kinds = append(kinds, string(kind))
	}
	return strings.Join(kinds, ", ")
}

func newAWSClear(g *global) *cobra.Command {
	return &cobra.Command{
		Use: "clear [FAULT...]", Short: "Remove faults, all if none are named",
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := g.dialAccount(cmd.Context())
			if err != nil {
				return err
			}
			cleared, err := client.ClearFaults(cmd.Context(), args...)
			if err != nil {
				return err
			}
			if cleared < len(args) {
				return fmt.Errorf("only %d of %d faults existed: see `croft-sandbox aws faults`", cleared, len(args))
			}
			_, err = fmt.Fprintf(cmd.ErrOrStderr(), "removed %d faults\n", cleared)
			return err
		},
	}
}

func newAWSInterrupt(g *global) *cobra.Command {
	return &cobra.Command{
		Use: "interrupt INSTANCE", Short: "Interrupt a spot instance, with AWS's interruption notice", Args: checkArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := g.dialAccount(cmd.Context())
			if err != nil {
				return err
			}
			return client.Interrupt(cmd.Context(), args[0])
		},
	}
}

func newAWSReserve(g *global) *cobra.Command {
	r := account.CapacityReservation{}
	tags := map[string]string{}
	cmd := &cobra.Command{
		Use: "reserve", Short: "Reserve capacity for instances of a type in a zone", Args: checkArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if account.FindType(r.Type) == nil {
				return usageError{fmt.Errorf("--type %q: there is no such type of instance", r.Type)}
			}
			client, err := g.dialAccount(cmd.Context())
			if err != nil {
				return err
			}
			r.Tags = tags
			id, err := client.Reserve(cmd.Context(), r)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), id)
			return err
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&r.Type, "type", "m5.large", "the type")
	flags.StringVar(&r.Zone, "zone", component.AWSRegion+"a", "the zone")
	flags.IntVar(&r.Total, "count", 1, "the number of instances")
	flags.StringToStringVar(&tags, "tags", nil, "tags, as KEY=VALUE")
	return cmd
}

// newAWSLeft returns the command that lists resources that a deleted cluster left behind.
func newAWSLeft(g *global) *cobra.Command {
	return &cobra.Command{
		Use: "left", Short: "List the resources that the cluster created in the account and did not delete; the exit code is 1 if there are any",
		Args: checkArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, err := g.dialAccount(cmd.Context())
			if err != nil {
				return err
			}
			holding, err := client.GetHolding(cmd.Context())
			if err != nil {
				return err
			}
			left := holding.ListLeft()
			for _, resource := range left {
				if _, err := fmt.Fprintln(cmd.OutOrStdout(), resource); err != nil {
					return err
				}
			}
			if len(left) > 0 {
				return exitCode(exitFailed)
			}
			return nil
		},
	}
}

func newAWSEnv(g *global) *cobra.Command {
	return &cobra.Command{
		Use: "env", Short: "Print the environment variables with which AWS's own tools use the account", Args: checkArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, err := g.dialAccount(cmd.Context())
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), `export AWS_ENDPOINT_URL=%s
export AWS_REGION=%s
export AWS_ACCESS_KEY_ID=AKIASANDBOX
export AWS_SECRET_ACCESS_KEY=sandbox
`, client.Address, component.AWSRegion)
			return err
		},
	}
}
