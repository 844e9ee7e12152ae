package cli

import (
	"log/slog"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"croft.dev/croft/internal/agent"
)

func newAgent(a *app) *cobra.Command {
	var node string
	c := &cobra.Command{
		Use:   "agent",
		Short: "Set up the interfaces of one node in secondary networks",
		Long: `Set up the interfaces of the node that it runs on in secondary networks, until
stopped: their names, MTU and rp_filter, and the files that whereabouts reads. It reads
its own Node, on which croft's operator lists the interfaces, and writes the condition
croft.dev/NetworksReady there. It needs no rights in the cloud.

croft install --agent runs it on the nodes of pools with waitForNetworks. See
docs/networks.md.`,
		Example: `  croft agent --node ip-10-0-1-7.us-west-2.compute.internal`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			machine, err := agent.ThisMachine()
			if err != nil {
				return failed(err)
			}
			config, err := a.config()
			if err != nil {
				return failed(err)
			}
			log := slog.New(slog.NewJSONHandler(cmd.ErrOrStderr(), nil))
			klog.SetLogger(logr.FromSlogHandler(log.Handler()))
			ctrl.SetLogger(logr.FromSlogHandler(log.Handler()))
			return failed(unreachable(agent.Run(cmd.Context(), config, node, machine, log)))
		},
	}
	c.Flags().StringVar(&node, "node", "", "name of the Node")
	_ = c.MarkFlagRequired("node")
	return c
}
