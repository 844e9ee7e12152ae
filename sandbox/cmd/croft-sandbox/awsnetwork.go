package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"croft.dev/croft/sandbox/internal/cloud"
	"croft.dev/croft/sandbox/internal/cloud/account"
	"croft.dev/croft/sandbox/internal/component"
)

// newAWSSubnet returns the command that creates a subnet for a secondary network.
func newAWSSubnet(g *global) *cobra.Command {
	var zone, cidr string
	tags := map[string]string{}
	cmd := &cobra.Command{
		Use: "subnet", Short: "Create a subnet for a secondary network, and print its ID", Args: checkArgs(cobra.NoArgs),
		Example: "  croft-sandbox aws subnet --zone us-west-2a --cidr 10.0.64.0/24 --tags Name=Multus1Az1",
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, err := g.dialAccount(cmd.Context())
			if err != nil {
				return err
			}
			made, err := client.AddSubnet(cmd.Context(), zone, cidr, tags)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), made.ID)
			return err
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&zone, "zone", component.AWSRegion+"a", "the zone")
	flags.StringVar(&cidr, "cidr", "10.0.64.0/24", "its CIDR, within 10.0.0.0/16")
	flags.StringToStringVar(&tags, "tags", nil, "tags, as KEY=VALUE")
	return cmd
}

func newAWSInterfaces(g *global) *cobra.Command {
	return newListing(g, "interfaces", "List the network interfaces",
		func(ctx context.Context, c cloud.Client) ([]account.Interface, error) {
			holding, err := c.GetHolding(ctx)
			return holding.Interfaces, err
		},
		"INTERFACE SUBNET ADDRESS STATUS INSTANCE DEVICE NETWORK", func(n account.Interface) []any {
			address, instance, device := "-", "-", "-"
			if len(n.Addresses) > 0 {
				address = n.Addresses[0]
			}
			status := n.Status()
			if t := n.Attachment; t != nil {
				status, instance, device = t.Status(time.Now()), t.Instance, fmt.Sprint(t.DeviceIndex)
			}
			return []any{n.ID, n.Subnet, address, status, instance, device, n.Tags["croft.dev/network"]}
		})
}
