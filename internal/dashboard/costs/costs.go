// Package costs asks croft ledger for the costs that a user may read, with the user's own token.
package costs

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
	"time"

	"croft.dev/croft/internal/cost/report"
	"croft.dev/croft/internal/cost/server"
)

const (
	// timeout limits a request to the ledger, and maxAnswer the size of its answer.
	timeout   = 25 * time.Second
	maxAnswer = 16 << 20
	// months is the number of months of a history.
	months = 6
)

// ErrForbidden means that the user may not read these costs. ErrUnsupported means that the ledger is older
// than the dashboard, and has no histories. ErrUnknownUser means that the ledger's API server does not accept
// the token, which another issuer has signed.
var (
	ErrUnknownUser = errors.New("the ledger does not accept the token")
	ErrForbidden   = errors.New("the user may not read these costs")
	ErrUnsupported = errors.New("the ledger has no histories: its version of croft is older")
)

// Ledger is a croft ledger.
type Ledger struct {
	address *url.URL
	client  *http.Client
}

// New returns the ledger at an https URL. Without certificate authorities, the system's are used.
func New(address string, authorities *x509.CertPool) (*Ledger, error) {
	parsed, err := url.Parse(address)
	if err != nil || parsed.Scheme != "https" || parsed.Host == "" || parsed.User != nil || parsed.RawQuery != "" || parsed.Fragment != "" {
		return nil, fmt.Errorf("%q: write an https URL, such as https://croft-ledger.croft-system.svc", address)
	}
	transport := &http.Transport{
		Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true, IdleConnTimeout: time.Minute,
		TLSClientConfig: &tls.Config{RootCAs: authorities, MinVersion: tls.VersionTLS12},
	}
	return &Ledger{address: parsed.JoinPath(server.HistoryPath), client: &http.Client{
		Transport: transport, Timeout: timeout,
		// A redirect could lead the token to another server.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// ReadHistory reads the costs of the tenant of a namespace or, with an empty namespace, of the cluster.
func (l *Ledger) ReadHistory(ctx context.Context, token, namespace, by string, now time.Time) (*report.History, error) {
	since := now.Sub(report.FindHistoryStart(months, now)).Truncate(time.Second)
	query := url.Values{"by": {by}, "since": {since.String()}}
	if namespace != "" {
		query.Set("namespace", namespace)
	}
	target := *l.address
	target.RawQuery = query.Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+token)
	response, err := l.client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("ask the ledger: %w", err)
	}
	defer response.Body.Close()
	switch response.StatusCode {
	case http.StatusOK:
	case http.StatusUnauthorized:
		return nil, ErrUnknownUser
	case http.StatusForbidden:
		return nil, ErrForbidden
	case http.StatusNotFound:
		return nil, ErrUnsupported
	default:
		return nil, fmt.Errorf("ask the ledger: %s", response.Status)
	}
	h := &report.History{}
	if err := json.NewDecoder(io.LimitReader(response.Body, maxAnswer)).Decode(h); err != nil {
		return nil, fmt.Errorf("read the ledger's answer: %w", err)
	}
	return h, nil
}
