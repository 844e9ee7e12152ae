package cli

import (
	"fmt"
	"log/slog"

	"github.com/spf13/cobra"

	"croft.dev/croft/internal/access/proxy"
	"croft.dev/croft/internal/cost/service"
	"croft.dev/croft/internal/declare/logging"
)

func newLedger(a *app) *cobra.Command {
	var o service.Options
	var logs logging.Options
	var authentication string
	c := &cobra.Command{
		Use:   "ledger",
		Short: "Record the cost of each hour, and serve it to tenants",
		Long: `Record the cost of each hour from the objects of the cluster, also of objects that are
deleted later, and serve it by HTTPS to croft cost --ledger. docs/how-to/cost.md describes
the setup.

Users send their own tokens of the cluster. Who may get costs.croft.dev in a namespace
reads the cost of its tenant; who may do so in the whole cluster reads everything. In pools
that several tenants may use, a tenant does not see idle cost: it would reveal the cost of
others. With --authentication-config, the ledger also accepts the tokens of the identity
providers of croft proxy, which the API server need not know.

Hours are stored in --data-dir for 35 days, and days for 13 months. The current hour is
visible within a minute. An hour is final ten minutes after its end. The process may be
killed at any time: objects that then disappear unobserved are estimated. With leader
election, ConfigMaps in croft-system have copies of the last 48 hours, which a start with
an empty or damaged directory restores.

Prices have the sources of croft cost, and are read again every minute.

Metrics for Prometheus are at --metrics-addr, without amounts, since it asks for no token. The
cost of the whole cluster is in the metrics at /v1/metrics of --addr, for users who may get
costs.croft.dev/metrics in the whole cluster.`,
		Example: `  croft ledger --data-dir /var/lib/croft --tls-cert-file tls.crt --tls-private-key-file tls.key
  croft ledger --data-dir /var/lib/croft --tls-cert-file tls.crt --tls-private-key-file tls.key --prices prices.yaml \
    --karpenter-metrics http://karpenter.kube-system:8080/metrics`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.Prices.Prices != "" {
				if _, err := (service.PriceFiles{Prices: o.Prices.Prices}).Load(cmd.Context()); err != nil {
					return fmt.Errorf("--prices: %w", err)
				}
			}
			if authentication != "" {
				if _, err := readAuthentication(authentication); err != nil {
					return err
				}
			}
			config, err := a.loadConfig()
			if err != nil {
				return toFailure(err)
			}
			handler := a.newLogHandler(cmd, &logs)
			logging.Install(handler)
			o.Log = slog.New(handler)
			if authentication != "" {
				if o.Tokens, err = proxy.NewTokenAuthenticator(cmd.Context(), authentication, o.Log); err != nil {
					return toFailure(err)
				}
			}
			return toFailure(explainUnreachable(service.Run(cmd.Context(), config, o)))
		},
	}
	logs.AddFlags(c.Flags())
	c.Flags().StringVar(&o.Directory, "data-dir", "", "directory of the records, on a volume that outlives the process")
	c.Flags().StringVar(&o.Prices.Prices, "prices", "", "file of the platform's prices")
	c.Flags().StringVar(&o.Prices.Metrics, "karpenter-metrics", "", "file or URL of Karpenter's metrics")
	c.Flags().StringVar(&o.Serving.Addr, "addr", ":8443", "address to listen on")
	c.Flags().StringVar(&o.Serving.CertFile, "tls-cert-file", "", "path of the serving certificate; reloaded when it changes")
	c.Flags().StringVar(&o.Serving.KeyFile, "tls-private-key-file", "", "path of the serving certificate's private key")
	c.Flags().StringVar(&authentication, "authentication-config", "", "path of an AuthenticationConfiguration (apiserver.config.k8s.io): also accept the tokens of its identity providers; reloaded when it changes")
	c.Flags().StringVar(&o.HealthAddr, "health-addr", ":8081", "address of /healthz and /readyz; 0 for none")
	c.Flags().StringVar(&o.MetricsAddr, "metrics-addr", ":8080", "address of /metrics, without amounts; 0 for none")
	c.Flags().BoolVar(&o.LeaderElect, "leader-elect", true, "elect a leader: of several replicas, only one works")
	for _, required := range []string{"data-dir", "tls-cert-file", "tls-private-key-file"} {
		_ = c.MarkFlagRequired(required)
	}
	return c
}
