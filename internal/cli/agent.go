package cli

import (
	"log/slog"

	"github.com/spf13/cobra"

	"croft.dev/croft/internal/declare/logging"
	"croft.dev/croft/internal/network/agent"
)

func newAgent(a *app) *cobra.Command {
	var node, journal string
	var logs logging.Options
	c := &cobra.Command{
		Use:   "agent",
		Short: "Set up the interfaces of one node in secondary networks",
		Long: `Set up the interfaces of this node in secondary networks, until stopped: their names,
MTU and rp_filter, and the files that whereabouts reads. The agent reads its own Node,
on which croft's operator lists the interfaces, and writes the condition
croft.dev/NetworksReady there. It needs no rights in the cloud.

With --journal, the agent also reads the node's journal once, when the node is Ready,
and writes the times of the boot to its Node, for croft latency.

croft install --agent deploys the agent on the nodes of pools with waitForNetworks. See
docs/how-to/networks.md.`,
		Example: `  croft agent --node ip-10-0-1-7.us-west-2.compute.internal`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			machine, err := agent.ThisMachine()
			if err != nil {
				return toFailure(err)
			}
			config, err := a.loadConfig()
			if err != nil {
				return toFailure(err)
			}
			handler := a.newLogHandler(cmd, &logs)
			logging.Install(handler)
			var boot agent.BootReader
			if journal != "" {
				boot = agent.Journal(journal)
			}
			return toFailure(explainUnreachable(agent.Run(cmd.Context(), config, node, machine, boot, slog.New(handler))))
		},
	}
	logs.AddFlags(c.Flags())
	c.Flags().StringVar(&node, "node", "", "name of the Node")
	_ = c.MarkFlagRequired("node")
	c.Flags().StringVar(&journal, "journal", "", "directory of the node's journal, such as /var/log/journal; not read if empty")
	return c
}
