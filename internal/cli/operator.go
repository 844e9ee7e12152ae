package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"croft.dev/croft/internal/logging"
	"croft.dev/croft/internal/operator"
	"croft.dev/croft/internal/secondary"
)

func newOperator(a *app) *cobra.Command {
	var options operator.Options
	var plugins, of string
	var logs logging.Options
	c := &cobra.Command{
		Use:   "operator",
		Short: "Run croft's controllers until stopped",
		Long: `Run croft's controllers until stopped. Inside a cluster it acts as
its service account, elsewhere as the kubeconfig's user. The walls stand without it.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var err error
			if options.Plugins, err = secondary.ParsePlugins(of, plugins); err != nil {
				return fmt.Errorf("--network-plugins: %w", err)
			}
			config, err := a.loadConfig()
			if err != nil {
				return toFailure(err)
			}
			options.Log = logging.Install(a.newLogHandler(cmd, &logs))
			return toFailure(explainUnreachable(operator.Run(cmd.Context(), config, options)))
		},
	}
	logs.AddFlags(c.Flags())
	c.Flags().StringVar(&options.HealthAddr, "health-addr", ":8081", "address of /healthz and /readyz; 0 for none")
	c.Flags().StringVar(&options.MetricsAddr, "metrics-addr", ":8080", "address of /metrics; 0 for none")
	c.Flags().BoolVar(&options.LeaderElect, "leader-elect", true, "let one of several replicas work and the others stand by")
	c.Flags().StringSliceVar(&options.APIServers, "api-servers", nil, "HOST:PORT of each API server that has to confirm a tenant's rules; those of the EndpointSlice default/kubernetes if empty")
	c.Flags().StringVar(&of, "network-plugins-namespace", secondary.PluginsNamespace, "namespace of the DaemonSets that nodes of pools with waitForNetworks wait for")
	c.Flags().StringVar(&plugins, "network-plugins", secondary.PluginsLabels, "labels of these DaemonSets' pods; nodes wait for none if empty")
	c.Flags().StringVar(&options.Trace.Endpoint, "tracing-endpoint", "", "HOST:PORT of an OpenTelemetry collector that takes traces of reconciles (OTLP by gRPC, without TLS); no traces without")
	c.Flags().Int32Var(&options.Trace.RatePerMillion, "tracing-rate-per-million", 10_000, "how many of a million reconciles are traced")
	return c
}
