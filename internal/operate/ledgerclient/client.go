// Package ledgerclient asks croft ledger over HTTPS, with a token of the caller.
package ledgerclient

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"time"
)

const (
	// timeout limits a call of Get, and maxAnswer the size of its answer: some hundred bytes for each of 5,000
	// tenants, and much room.
	timeout   = 25 * time.Second
	maxAnswer = 16 << 20
)

// StatusError is an answer of the ledger other than OK.
type StatusError int

// Error returns the status with its name.
func (e StatusError) Error() string {
	return fmt.Sprintf("the ledger's answer is %d %s", int(e), http.StatusText(int(e)))
}

// Client asks a ledger.
type Client struct {
	address *url.URL
	client  *http.Client
}

// ParseAddress reads the URL of a ledger.
func ParseAddress(text string) (*url.URL, error) {
	address, err := url.Parse(text)
	if err != nil || address.Scheme != "https" || address.Host == "" || address.User != nil || address.RawQuery != "" || address.Fragment != "" {
		return nil, errors.New("write an https URL, such as https://croft-ledger.croft-system.svc")
	}
	return address, nil
}

// ReadAuthorities reads a CA bundle. It returns nil, which means the system's authorities, without a name, and also
// if the file does not exist: a Secret of a certificate with a public authority has none.
func ReadAuthorities(file string) (*x509.CertPool, error) {
	if file == "" {
		return nil, nil
	}
	data, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	authorities := x509.NewCertPool()
	if !authorities.AppendCertsFromPEM(data) {
		return nil, fmt.Errorf("%s: the file has no PEM certificate", file)
	}
	return authorities, nil
}

// New returns a client of the ledger at a URL of ParseAddress. Without certificate authorities, the system's
// are used.
func New(address *url.URL, authorities *x509.CertPool) *Client {
	return &Client{address: address, client: &http.Client{
		Transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true, IdleConnTimeout: time.Minute,
			TLSClientConfig: &tls.Config{RootCAs: authorities, MinVersion: tls.VersionTLS12},
		},
		// A redirect could lead the token to another server.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Close closes the connections that no request uses.
func (c *Client) Close() { c.client.CloseIdleConnections() }

// Open requests a resource, and returns the response with any status. The caller closes its body. The request has
// no header but the token.
func (c *Client) Open(ctx context.Context, path, query, token string) (*http.Response, error) {
	target := *c.address.JoinPath(path)
	target.RawQuery = query
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+token)
	response, err := c.client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("ask the ledger: %w", err)
	}
	return response, nil
}

// Get requests a resource, and decodes its answer. The error is a StatusError if the ledger refuses.
func (c *Client) Get(ctx context.Context, path string, query url.Values, token string, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	response, err := c.Open(ctx, path, query.Encode(), token)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return StatusError(response.StatusCode)
	}
	if err := json.NewDecoder(io.LimitReader(response.Body, maxAnswer)).Decode(answer); err != nil {
		return fmt.Errorf("read the ledger's answer: %w", err)
	}
	return nil
}
