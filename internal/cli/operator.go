package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"croft.dev/croft/internal/declare/budget"
	"croft.dev/croft/internal/declare/logging"
	"croft.dev/croft/internal/declare/secondary"
	"croft.dev/croft/internal/operate/operator"
)

func newOperator(a *app) *cobra.Command {
	var options operator.Options
	var plugins, of string
	var logs logging.Options
	c := &cobra.Command{
		Use:   "operator",
		Short: "Run croft's controllers until stopped",
		Long: `Run croft's controllers until stopped. Inside a cluster it acts as
its service account, elsewhere as the kubeconfig's user. The walls stay in force while
no operator runs.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var err error
			if err = options.Ledger.Check(); err != nil {
				return err
			}
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
	c.Flags().BoolVar(&options.LeaderElect, "leader-elect", true, "elect a leader: of several replicas, only one works")
	c.Flags().StringSliceVar(&options.APIServers, "api-servers", nil, "HOST:PORT of each API server that has to confirm a tenant's rules; by default the addresses in the EndpointSlice default/kubernetes")
	c.Flags().StringVar(&of, "network-plugins-namespace", secondary.PluginsNamespace, "namespace of the network plugins' DaemonSets, for which nodes of pools with waitForNetworks wait")
	c.Flags().StringVar(&plugins, "network-plugins", secondary.PluginsLabels, "labels of these DaemonSets' pods; if empty, nodes do not wait for them")
	c.Flags().StringVar(&options.Ledger.URL, "ledger", "", "URL of croft ledger, which measures the cost for tenants' budgets; without it no stage of a budget begins")
	c.Flags().StringVar(&options.Ledger.TokenFile, "ledger-token-file", "", "file with a token of the operator's service account for the audience "+budget.Audience)
	c.Flags().StringVar(&options.Ledger.AuthorityFile, "ledger-certificate-authority", "", "file with the CA bundle of the ledger's certificate; the system's by default, and if the file does not exist")
	c.Flags().StringVar(&options.Trace.Endpoint, "tracing-endpoint", "", "HOST:PORT of an OpenTelemetry collector for traces of reconciles (OTLP by gRPC, without TLS); without it there are no traces")
	c.Flags().Int32Var(&options.Trace.RatePerMillion, "tracing-rate-per-million", 10_000, "number of reconciles to trace, of each million")
	return c
}
