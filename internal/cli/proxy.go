package cli

import (
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"

	"croft.dev/croft/internal/access/proxy"
	"croft.dev/croft/internal/declare/logging"
	"croft.dev/croft/internal/operate/ledgerclient"
)

func newProxy(a *app) *cobra.Command {
	serving := proxy.Serving{}
	options := proxy.Options{}
	var logs logging.Options
	var clientCA, auditLog, ledger string
	c := &cobra.Command{
		Use:   "proxy",
		Short: "Run an authenticating proxy for the API server",
		Long: `Run an authenticating proxy for the API server, for clusters that cannot be configured
with your identity provider, such as managed ones. The proxy authenticates requests by
the API server's own AuthenticationConfiguration and forwards them by impersonation.
Authorization stays with the API server. Users cannot impersonate others through the
proxy; service accounts use their own tokens.

With --ledger, the proxy also forwards requests for costs to croft ledger, with the caller's
own token: GET requests below ` + proxy.LedgerPath + `. See docs/how-to/cost.md.

In a cluster the proxy runs as its service account, elsewhere as the kubeconfig's user,
who needs permission to impersonate.`,
		Example: `  croft proxy --authentication-config issuers.yaml --tls-cert-file tls.crt --tls-private-key-file tls.key`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if _, err := readAuthentication(options.AuthenticationConfig); err != nil {
				return err
			}
			if ledger != "" {
				var err error
				if options.Ledger, err = ledgerclient.ParseAddress(ledger); err != nil {
					return fmt.Errorf("--ledger %s: %w", escapeLine(ledger), err)
				}
			}
			config, err := a.loadConfig()
			if err != nil {
				return toFailure(err)
			}
			handler := a.newLogHandler(cmd, &logs)
			if a.cluster.verbosity > 0 {
				// Otherwise klog stays silent: it logs each request with an invalid token,
				// and anyone who reaches the proxy can send those.
				logging.Install(handler)
			}
			options.Upstream, options.Log = config, slog.New(handler)
			tlsConfig := &tls.Config{MinVersion: tls.VersionTLS12}
			if clientCA != "" {
				authority, err := dynamiccertificates.NewDynamicCAContentFromFile("clients", clientCA)
				if err != nil {
					return toFailure(err)
				}
				go authority.Run(cmd.Context(), 1)
				options.Clients = authority
				tlsConfig.ClientAuth = tls.RequestClientCert
			}
			if options.Audit.Out, err = a.openAuditLog(auditLog); err != nil {
				return toFailure(err)
			}
			p, err := proxy.New(cmd.Context(), options)
			if err != nil {
				return toFailure(err)
			}
			return toFailure(serving.Serve(cmd.Context(), p, tlsConfig))
		},
	}
	logs.AddFlags(c.Flags())
	// Flags that kube-apiserver also has keep its names.
	c.Flags().StringVar(&options.AuthenticationConfig, "authentication-config", "", "path of an AuthenticationConfiguration (apiserver.config.k8s.io); reloaded when it changes")
	c.Flags().StringVar(&options.Role, "impersonation-role", "", "ClusterRole that lists the groups which the proxy may impersonate; other groups of users are removed from requests. By default no groups are removed")
	c.Flags().StringVar(&serving.CertFile, "tls-cert-file", "", "path of the serving certificate; reloaded when it changes")
	c.Flags().StringVar(&serving.KeyFile, "tls-private-key-file", "", "path of the serving certificate's private key")
	c.Flags().StringVar(&clientCA, "client-ca-file", "", "path of the CA bundle for client certificates; reloaded when it changes. By default they are not accepted")
	c.Flags().StringVar(&serving.Addr, "addr", ":8443", "address to listen on")
	c.Flags().StringVar(&serving.HealthAddr, "health-addr", ":8081", "address of /healthz, /readyz and /metrics; 0 disables them")
	c.Flags().StringVar(&ledger, "ledger", "", "URL of croft ledger, which answers requests below "+proxy.LedgerPath+"; by default the API server gets them, as all others")
	c.Flags().StringVar(&options.LedgerAuthorityFile, "ledger-ca-file", "", "path of the CA bundle for --ledger; reloaded when it changes. The system's by default, and if the file does not exist")
	refusePointlessFlags(c, "it is for --ledger", func() bool { return ledger == "" }, "ledger-ca-file")
	c.Flags().DurationVar(&serving.Drain, "drain", time.Minute, "how long open requests may continue after the proxy is stopped")
	c.Flags().StringVar(&auditLog, "audit-log-path", "", "path of the audit log, in audit.k8s.io/v1 JSON; - for standard output. By default nothing is recorded")
	c.Flags().StringVar(&options.Audit.PolicyFile, "audit-policy-file", "", "path of an audit.k8s.io/v1 Policy; by default the metadata of every request is recorded")
	for _, required := range []string{"authentication-config", "tls-cert-file", "tls-private-key-file"} {
		_ = c.MarkFlagRequired(required)
	}
	return c
}

// readAuthentication reads and validates an AuthenticationConfiguration.
func readAuthentication(file string) (string, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	if err := proxy.CheckConfiguration(content); err != nil {
		return "", fmt.Errorf("%s: %w", file, err)
	}
	return string(content), nil
}

// openAuditLog opens the audit log. It returns nil if path is empty.
func (a *app) openAuditLog(path string) (io.Writer, error) {
	switch path {
	case "":
		return nil, nil
	case "-":
		return a.out, nil
	default:
		return os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	}
}
