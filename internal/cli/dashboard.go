package cli

import (
	"crypto/x509"
	"fmt"
	"log/slog"
	"strings"

	"github.com/spf13/cobra"

	"croft.dev/croft/internal/access/login"
	"croft.dev/croft/internal/dashboard/cluster"
	"croft.dev/croft/internal/dashboard/costs"
	"croft.dev/croft/internal/dashboard/provider"
	"croft.dev/croft/internal/dashboard/server"
	"croft.dev/croft/internal/dashboard/session"
	"croft.dev/croft/internal/declare/logging"
)

type dashboardOptions struct {
	serving server.Serving
	// target chooses the API server, without credentials.
	target  kubeconfigOptions
	keyFile string
	// identity is the identity provider; without an issuer there is none.
	identity   provider.Options
	secretFile string
	tokenLogin bool
	// ledger is the URL of croft ledger, and ledgerCAFile the file with its certificate authority.
	ledger, ledgerCAFile string
	logs                 logging.Options
}

func newDashboard(a *app) *cobra.Command {
	var o dashboardOptions
	c := &cobra.Command{
		Use:   "dashboard",
		Short: "Serve web pages for teams and platform admins, without rights of its own",
		Long: `Serve web pages: a tenant's problems, workloads and why they fail, quota and access, and
for platform admins all tenants. docs/how-to/dashboard.md describes them.

The dashboard has no rights. A user logs in at an OpenID Connect provider, or with a bearer
token of the cluster, and each request to the cluster carries the user's token. Of the
kubeconfig, the dashboard uses only the server and its certificate authority, never the
credentials.

With --oidc-issuer-url, users log in at that provider, with the authorization code flow and
PKCE. The redirect URI is --public-url followed by /login/callback. The cluster must accept the
provider's ID tokens for --oidc-client-id.

Without a certificate, it serves a self-signed one on the loopback interface. Without
--session-key-file, sessions end with the process, and only one replica can serve them.`,
		Example: `  croft dashboard
  croft dashboard --server https://k8s.example.org --certificate-authority ca.crt --listen :9443 --tls-cert-file tls.crt --tls-private-key-file tls.key --session-key-file keys
  croft dashboard --public-url https://127.0.0.1:9443 --oidc-issuer-url https://login.example.org --oidc-client-id croft-dashboard`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.runDashboard(cmd, &o) },
	}
	o.logs.AddFlags(c.Flags())
	c.Flags().StringVar(&o.serving.Addr, "listen", "127.0.0.1:9443", "address to listen on")
	c.Flags().StringVar(&o.target.server, "server", "", "URL of croft's proxy or of the API server; by default the server of the current context")
	c.Flags().StringVar(&o.target.authority, "certificate-authority", "", "path of the CA bundle for --server; the system's by default")
	c.Flags().StringVar(&o.serving.CertFile, "tls-cert-file", "", "path of the serving certificate; reloaded when it changes")
	c.Flags().StringVar(&o.serving.KeyFile, "tls-private-key-file", "", "path of the serving certificate's private key")
	c.Flags().StringVar(&o.keyFile, "session-key-file", "", "path of a file with one or two keys that encrypt sessions, one a line, each 32 bytes in base64; the first encrypts, both decrypt; reloaded when it changes")
	c.Flags().StringVar(&o.ledger, "ledger", "", "URL of croft ledger, for the pages of costs; it gets the users' tokens")
	c.Flags().StringVar(&o.ledgerCAFile, "ledger-ca-file", "", "path of the CA bundle for --ledger; the system's by default")
	refusePointlessFlags(c, "it is for --ledger", func() bool { return o.ledger == "" }, "ledger-ca-file")
	o.addProviderFlags(c)
	c.MarkFlagsRequiredTogether("tls-cert-file", "tls-private-key-file")
	refusePointlessFlags(c, "it is for --server", func() bool { return o.target.server == "" }, "certificate-authority")
	refusePointlessFlags(c, "--server names the cluster", func() bool { return o.target.server != "" }, "kubeconfig", "context")
	refusePointlessFlags(c, "the dashboard acts only as its users", func() bool { return true }, "as", "as-group")
	return c
}

// addProviderFlags adds the flags of the login. Flags that kube-apiserver also has keep its names.
func (o *dashboardOptions) addProviderFlags(c *cobra.Command) {
	c.Flags().StringVar(&o.identity.PublicURL, "public-url", "", "URL at which browsers open the dashboard, such as https://dashboard.example.org")
	c.Flags().StringVar(&o.identity.Issuer, "oidc-issuer-url", "", "URL of the identity provider, as in its tokens; without it, users log in with a token only")
	c.Flags().StringVar(&o.identity.ClientID, "oidc-client-id", "", "ID of the dashboard's client at the identity provider")
	c.Flags().StringVar(&o.secretFile, "oidc-client-secret-file", "", "path of a file with the client's secret; without it, the client is public")
	c.Flags().StringVar(&o.identity.CAFile, "oidc-ca-file", "", "path of the CA bundle for the identity provider; the system's by default")
	c.Flags().StringSliceVar(&o.identity.Scopes, "oidc-scopes", nil,
		"scopes to request in addition to openid; by default "+strings.Join(login.DefaultScopes(), ", ")+", as far as the provider supports them")
	c.Flags().StringVar(&o.identity.Prompt, "oidc-prompt", "", "the provider's prompt, such as consent or select_account; some issue refresh tokens only after consent")
	c.Flags().BoolVar(&o.tokenLogin, "token-login", true, "users may log in with a token, too")
	c.MarkFlagsRequiredTogether("oidc-issuer-url", "oidc-client-id", "public-url")
	refusePointlessFlags(c, "it is for --oidc-issuer-url", func() bool { return o.identity.Issuer == "" }, "oidc-client-secret-file", "oidc-ca-file", "oidc-scopes", "oidc-prompt")
	refusePointlessFlags(c, "without --oidc-issuer-url, there is no other login", func() bool { return o.identity.Issuer == "" }, "token-login")
}

// newLedger returns the ledger, or nil without one.
func (o *dashboardOptions) newLedger(a *app) (*costs.Ledger, error) {
	if o.ledger == "" {
		return nil, nil
	}
	var authorities *x509.CertPool
	if o.ledgerCAFile != "" {
		data, err := readFile(o.ledgerCAFile, a.in)
		if err != nil {
			return nil, fmt.Errorf("--ledger-ca-file: %w", err)
		}
		if authorities = x509.NewCertPool(); !authorities.AppendCertsFromPEM(data) {
			return nil, fmt.Errorf("--ledger-ca-file %s: the file has no PEM certificate", escapeLine(o.ledgerCAFile))
		}
	}
	ledger, err := costs.New(o.ledger, authorities)
	if err != nil {
		return nil, fmt.Errorf("--ledger %w", err)
	}
	return ledger, nil
}

// newProvider returns the identity provider, or nil without one.
func (o *dashboardOptions) newProvider(a *app) (*provider.Provider, error) {
	if o.identity.Issuer == "" {
		return nil, nil
	}
	if o.secretFile != "" {
		secret, err := readFile(o.secretFile, a.in)
		if err != nil {
			return nil, fmt.Errorf("--oidc-client-secret-file: %w", err)
		}
		if o.identity.ClientSecret = strings.TrimSpace(string(secret)); o.identity.ClientSecret == "" {
			return nil, fmt.Errorf("--oidc-client-secret-file %s: the file is empty", escapeLine(o.secretFile))
		}
	}
	o.identity.DefaultScopes = login.DefaultScopes()
	return provider.New(o.identity)
}

func (a *app) runDashboard(cmd *cobra.Command, o *dashboardOptions) error {
	if err := o.serving.Check(); err != nil {
		return fmt.Errorf("--listen %w", err)
	}
	keys := session.NewKeys()
	var keyText []byte
	if o.keyFile != "" {
		var err error
		if keyText, err = readFile(o.keyFile, a.in); err != nil {
			return fmt.Errorf("--session-key-file: %w", err)
		}
		if keys, err = session.ParseKeys(keyText); err != nil {
			return fmt.Errorf("--session-key-file %s: %w", escapeLine(o.keyFile), err)
		}
	}
	identity, err := o.newProvider(a)
	if err != nil {
		return err
	}
	ledger, err := o.newLedger(a)
	if err != nil {
		return err
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
	if o.keyFile != "" && o.keyFile != "-" {
		go server.ReloadKeys(cmd.Context(), keys, o.keyFile, keyText, log)
	}
	pages := server.New(server.Options{Cluster: target, Keys: keys, Provider: identity, TokenLogin: o.tokenLogin, Ledger: ledger, Stopping: cmd.Context().Done(), Log: log})
	return toFailure(o.serving.Serve(cmd.Context(), pages, log))
}
