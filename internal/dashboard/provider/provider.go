// Package provider logs the dashboard's users in at an OpenID Connect provider, by the authorization
// code flow with PKCE, and renews their ID tokens.
package provider

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
)

const (
	// CallbackPath is the path of the dashboard to which the provider redirects browsers.
	CallbackPath = "/login/callback"
	// requestTimeout is the time limit of a request to the provider.
	requestTimeout = 10 * time.Second
	// metadataLifetime is the time for which the provider's discovery document is kept.
	metadataLifetime = time.Hour
)

// Options configure the provider. Errors name the flags of croft dashboard.
type Options struct {
	// Issuer is the provider's URL, as in the iss claim of its tokens.
	Issuer string
	// ClientID identifies the dashboard at the provider. ClientSecret is empty for a public
	// client.
	ClientID, ClientSecret string
	// CAFile is the path of a CA bundle in PEM for the provider's certificate; the system's by
	// default.
	CAFile string
	// Scopes are requested in addition to openid. Without them, the login requests
	// DefaultScopes, as far as the provider supports them.
	Scopes, DefaultScopes []string
	// Prompt is the prompt parameter of the authorization request; omitted by default.
	Prompt string
	// PublicURL is the URL at which browsers open the dashboard.
	PublicURL string
}

// Provider is a client at an OpenID Connect provider.
type Provider struct {
	options Options
	client  *http.Client
	found   atomic.Pointer[metadata]
}

// New returns a client of a provider. It does not connect to the provider, so that the dashboard
// starts without it.
func New(o Options) (*Provider, error) {
	if !isHTTPS(o.Issuer) {
		return nil, fmt.Errorf("--oidc-issuer-url %q: write an https URL without query and fragment, such as https://login.example.org", o.Issuer)
	}
	if o.ClientID == "" {
		return nil, errors.New("--oidc-client-id is empty: set it to the ID of the dashboard's client at the identity provider")
	}
	o.PublicURL = strings.TrimSuffix(o.PublicURL, "/")
	public, err := url.Parse(o.PublicURL)
	if err != nil || !isHTTPS(o.PublicURL) || public.Path != "" {
		return nil, fmt.Errorf("--public-url %q: write the https URL at which browsers open the dashboard, without a path, such as https://dashboard.example.org", o.PublicURL)
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if o.CAFile != "" {
		content, err := os.ReadFile(o.CAFile)
		if err != nil {
			return nil, fmt.Errorf("--oidc-ca-file: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(content) {
			return nil, fmt.Errorf("--oidc-ca-file %q: the file has no PEM certificate", o.CAFile)
		}
	}
	return &Provider{options: o, client: &http.Client{
		Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: config, ForceAttemptHTTP2: true, IdleConnTimeout: time.Minute},
		Timeout:   requestTimeout,
		// A redirect could lead codes and tokens to another server.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// isHTTPS reports whether a text is an https URL without credentials, query and fragment.
func isHTTPS(text string) bool {
	u, err := url.Parse(text)
	return err == nil && u.Scheme == "https" && u.Host != "" && u.User == nil && u.RawQuery == "" && u.Fragment == ""
}

// metadata is the provider's discovery document.
type metadata struct {
	*oidc.Provider
	oauth  oauth2.Config
	expiry time.Time
	fields
}

// fields are the fields of the discovery document that go-oidc does not have.
type fields struct {
	Scopes []string `json:"scopes_supported"`
	// Methods are the ways in which a client may authenticate.
	Methods []string `json:"token_endpoint_auth_methods_supported"`
	// SendsIssuer announces the parameter iss of RFC 9207.
	SendsIssuer bool `json:"authorization_response_iss_parameter_supported"`
	// EndSession and Revocation are empty if the provider does not have them.
	EndSession string `json:"end_session_endpoint"`
	Revocation string `json:"revocation_endpoint"`
	Keys       string `json:"jwks_uri"`
}

// discover returns the provider's discovery document.
func (p *Provider) discover(ctx context.Context) (*metadata, error) {
	if m := p.found.Load(); m != nil && time.Now().Before(m.expiry) {
		return m, nil
	}
	found, err := oidc.NewProvider(oidc.ClientContext(ctx, p.client), p.options.Issuer)
	if err != nil {
		return nil, p.explainError(err)
	}
	m := &metadata{Provider: found, expiry: time.Now().Add(metadataLifetime)}
	if err := found.Claims(&m.fields); err != nil {
		return nil, p.explainError(err)
	}
	endpoint := found.Endpoint()
	for name, address := range map[string]string{
		"authorization_endpoint": endpoint.AuthURL, "token_endpoint": endpoint.TokenURL, "jwks_uri": m.Keys,
		"end_session_endpoint": m.EndSession, "revocation_endpoint": m.Revocation,
	} {
		if u, err := url.Parse(address); address != "" && (err != nil || u.Scheme != "https") {
			return nil, fmt.Errorf("the identity provider's %s %q is not an https URL", name, address)
		}
	}
	// A detection would send each code twice.
	endpoint.AuthStyle = oauth2.AuthStyleInParams
	if p.usesBasic(m.Methods) {
		endpoint.AuthStyle = oauth2.AuthStyleInHeader
	}
	m.oauth = oauth2.Config{
		ClientID: p.options.ClientID, ClientSecret: p.options.ClientSecret, Endpoint: endpoint,
		RedirectURL: p.options.PublicURL + CallbackPath, Scopes: p.chooseScopes(m.Scopes),
	}
	p.found.Store(m)
	return m, nil
}

// usesBasic reports whether the client authenticates with HTTP Basic, which is the default of OpenID
// Connect.
func (p *Provider) usesBasic(methods []string) bool {
	return p.options.ClientSecret != "" && (len(methods) == 0 || slices.Contains(methods, "client_secret_basic"))
}

// chooseScopes returns the scopes to request.
func (p *Provider) chooseScopes(supported []string) []string {
	scopes := []string{oidc.ScopeOpenID}
	for _, scope := range p.options.Scopes {
		if scope != oidc.ScopeOpenID {
			scopes = append(scopes, scope)
		}
	}
	if len(p.options.Scopes) > 0 {
		return scopes
	}
	for _, scope := range p.options.DefaultScopes {
		if slices.Contains(supported, scope) {
			scopes = append(scopes, scope)
		}
	}
	return scopes
}
