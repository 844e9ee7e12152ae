package cli

import (
	"fmt"
	"log/slog"

	"github.com/spf13/cobra"

	"croft.dev/croft/internal/dashboard/cluster"
	"croft.dev/croft/internal/dashboard/server"
	"croft.dev/croft/internal/dashboard/session"
	"croft.dev/croft/internal/declare/logging"
)

type dashboardOptions struct {
	serving server.Serving
	// target chooses the API server, without credentials.
	target  kubeconfigOptions
	keyFile string
	logs    logging.Options
}

func newDashboard(a *app) *cobra.Command {
	var o dashboardOptions
	c := &cobra.Command{
		Use:   "dashboard",
		Short: "Serve web pages for teams and platform admins, without rights of its own",
		Long: `Serve web pages: a tenant's problems, workloads and why they fail, quota and access, and
for platform admins all tenants. docs/how-to/dashboard.md describes them.

The dashboard has no rights. A user logs in with a bearer token of the cluster, and each
request to the cluster carries that token. Of the kubeconfig, the dashboard uses only the
server and its certificate authority, never the credentials.

Without a certificate, it serves a self-signed one on the loopback interface. Without
--session-key-file, sessions end with the process, and only one replica can serve them.`,
		Example: `  croft dashboard
  croft dashboard --server https://k8s.example.org --certificate-authority ca.crt --listen :9443 --tls-cert-file tls.crt --tls-private-key-file tls.key --session-key-file keys`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.runDashboard(cmd, &o) },
	}
	o.logs.AddFlags(c.Flags())
	c.Flags().StringVar(&o.serving.Addr, "listen", "127.0.0.1:9443", "address to listen on")
	c.Flags().StringVar(&o.target.server, "server", "", "URL of croft's proxy or of the API server; by default the server of the current context")
	c.Flags().StringVar(&o.target.authority, "certificate-authority", "", "path of the CA bundle for --server; the system's by default")
	c.Flags().StringVar(&o.serving.CertFile, "tls-cert-file", "", "path of the serving certificate; reloaded when it changes")
	c.Flags().StringVar(&o.serving.KeyFile, "tls-private-key-file", "", "path of the serving certificate's private key")
	c.Flags().StringVar(&o.keyFile, "session-key-file", "", "path of a file with one or two keys that encrypt sessions, one a line, each 32 bytes in base64; the first encrypts, both decrypt")
	c.MarkFlagsRequiredTogether("tls-cert-file", "tls-private-key-file")
	refusePointlessFlag(c, "certificate-authority", "it is for --server", func() bool { return o.target.server == "" })
	for _, flag := range []string{"kubeconfig", "context"} {
		refusePointlessFlag(c, flag, "--server names the cluster", func() bool { return o.target.server != "" })
	}
	for _, flag := range []string{"as", "as-group"} {
		refusePointlessFlag(c, flag, "the dashboard acts only as its users", func() bool { return true })
	}
	return c
}

func (a *app) runDashboard(cmd *cobra.Command, o *dashboardOptions) error {
	if err := o.serving.Check(); err != nil {
		return fmt.Errorf("--listen %w", err)
	}
	keys := session.NewKeys()
	if o.keyFile != "" {
		text, err := readFile(o.keyFile, a.in)
		if err != nil {
			return fmt.Errorf("--session-key-file: %w", err)
		}
		if keys, err = session.ParseKeys(text); err != nil {
			return fmt.Errorf("--session-key-file %s: %w", escapeLine(o.keyFile), err)
		}
	}
	entry, err := o.target.buildClusterEntry(a)
	if err != nil {
		return err
	}
	target, err := cluster.NewServer(entry)
	if err != nil {
		return err
	}
	if err := a.logRequests(); err != nil {
		return err
	}
	handler := a.newLogHandler(cmd, &o.logs)
	if a.cluster.verbosity > 0 {
		logging.Install(handler)
	}
	log := slog.New(handler)
	pages := server.New(server.Options{Cluster: target, Keys: keys, Log: log})
	return toFailure(o.serving.Serve(cmd.Context(), pages, log))
}
