// Package login logs users in at an OpenID Connect provider and stores their tokens: the ID
// token, which the API server or croft proxy accepts, and the refresh token, which renews
// it without a browser.
package login

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"time"
)

// DefaultRedirect is the redirect URL at which croft receives the authorization code. It
// has no port, so croft listens on any free one (RFC 8252, section 7.3).
const DefaultRedirect = "http://127.0.0.1/callback"

// requestTimeout is the time limit of a request to the identity provider.
const requestTimeout = 30 * time.Second

// Storage is the place where refresh tokens are stored.
type Storage string

// The supported storages.
const (
	// Auto is the operating system's keyring, or a file if there is no keyring.
	Auto Storage = "auto"
	// Keyring is the operating system's keyring.
	Keyring Storage = "keyring"
	// File is a file with mode 0600.
	File Storage = "file"
)

// Storages returns all supported storages.
func Storages() []string { return []string{string(Auto), string(Keyring), string(File)} }

// Options configure the login at an identity provider.
type Options struct {
	// Issuer is the provider's URL, as in the iss claim of its tokens.
	Issuer string
	// ClientID identifies croft at the provider. ClientSecret is for clients that require
	// one; on users' machines it is not confidential.
	ClientID, ClientSecret string
	// Account is the user to log in as, with a session of its own. By default there is one
	// session for each provider, client and scopes.
	Account string
	// CertificateAuthority is the path of a CA bundle in PEM for the provider's
	// certificate; the system's by default.
	CertificateAuthority string
	// Scopes are requested in addition to openid. The default is the DefaultScopes that the
	// provider supports.
	Scopes []string
	// Prompt is the prompt parameter of the authorization request. By default it is
	// omitted, or consent if the scope offline_access is not requested.
	Prompt string
	// RedirectURL must be a loopback address; DefaultRedirect by default.
	RedirectURL string
	// GroupsClaim is the claim with the user's groups, which is used in messages only;
	// groups by default.
	GroupsClaim string
	// Device selects the device flow: the user enters a code on another device.
	Device bool
	// OpenBrowser opens a URL in the browser. If it is nil, the URL is only printed.
	OpenBrowser func(url string) error
	// Storage is Auto by default.
	Storage Storage
	// Dir is the directory of the stored logins.
	Dir string
	// Out receives the instructions for the user. Text from the provider passes through
	// Sanitize.
	Out io.Writer
	// Sanitize escapes control characters, so that text from the provider cannot control
	// the terminal.
	Sanitize func(string) string
}

// BadInputError is an invalid option, as opposed to a failed login.
type BadInputError struct{ message string }

// Error implements error.
func (e *BadInputError) Error() string { return e.message }

func newBadInput(format string, args ...any) error {
	return &BadInputError{message: fmt.Sprintf(format, args...)}
}

// validate checks the options, and returns the parsed redirect URL and the HTTP client.
func (o *Options) validate() (redirect *url.URL, client *http.Client, err error) {
	issuer, err := url.Parse(o.Issuer)
	switch {
	case o.Issuer == "":
		return nil, nil, newBadInput("--issuer is not set: set it to the URL of your identity provider, such as https://login.example.org")
	case err != nil || issuer.Scheme != "https" || issuer.Host == "" || issuer.User != nil:
		return nil, nil, newBadInput("--issuer %s: must be an https URL, such as https://login.example.org", o.Issuer)
	case issuer.RawQuery != "" || issuer.Fragment != "":
		return nil, nil, newBadInput("--issuer %s: must not have a query or fragment", o.Issuer)
	case o.ClientID == "":
		return nil, nil, newBadInput("--client-id is empty: set it to the client's ID at your identity provider")
	}
	switch o.Storage {
	case "", Auto, Keyring, File:
	default:
		return nil, nil, newBadInput("--token-storage %s: must be one of auto, keyring, file", o.Storage)
	}
	if redirect, err = parseLoopback(o.RedirectURL); err != nil {
		return nil, nil, err
	}
	client, err = newClient(o.CertificateAuthority)
	return redirect, client, err
}

// parseLoopback parses a redirect URL, whose host must be a loopback address.
func parseLoopback(text string) (*url.URL, error) {
	if text == "" {
		text = DefaultRedirect
	}
	redirect, err := url.Parse(text)
	if err != nil || redirect.Scheme != "http" || redirect.RawQuery != "" || redirect.Fragment != "" || redirect.User != nil {
		return nil, newBadInput("--redirect-url %s: must be a URL such as %s", text, DefaultRedirect)
	}
	if host := redirect.Hostname(); host != "localhost" {
		if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
			return nil, newBadInput("--redirect-url %s: the host must be 127.0.0.1, [::1] or localhost", text)
		}
	}
	return redirect, nil
}

// newClient returns an HTTP client that trusts the CAs in a file, or the system's.
func newClient(caFile string) (*http.Client, error) {
	transport, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		transport = &http.Transport{Proxy: http.ProxyFromEnvironment}
	}
	transport = transport.Clone()
	transport.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	if caFile != "" {
		content, err := os.ReadFile(caFile)
		if err != nil {
			return nil, newBadInput("--issuer-certificate-authority: %v", err)
		}
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(content) {
			return nil, newBadInput("--issuer-certificate-authority %s: the file has no PEM certificate", caFile)
		}
		transport.TLSClientConfig.RootCAs = pool
	}
	return &http.Client{Transport: transport, Timeout: requestTimeout}, nil
}
