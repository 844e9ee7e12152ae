package budgets

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
	"strings"
	"time"

	"croft.dev/croft/internal/declare/budget"
	"croft.dev/croft/internal/declare/wording"
)

const (
	// ledgerTimeout limits a request to the ledger, and maxAnswer the size of its answer: some hundred bytes
	// for each of 5,000 tenants, and much room.
	ledgerTimeout = 30 * time.Second
	maxAnswer     = 16 << 20
)

// LedgerOptions configure the connection to the ledger.
type LedgerOptions struct {
	// URL is the https URL of the ledger. Without it, the operator asks no ledger, and no stage begins.
	URL string
	// TokenFile has a token of the operator's service account for the audience budget.Audience. The kubelet
	// renews it. The API server does not accept it, so a ledger in other hands gains no rights by it.
	TokenFile string
	// AuthorityFile has the CA bundle of the ledger's certificate; the system's by default, and also if the
	// file does not exist.
	AuthorityFile string
	// Interval is the time between two requests, 5 minutes by default: the ledger computes the current hour
	// each minute.
	Interval time.Duration
}

// ledger asks a ledger for the cost of all tenants.
type ledger struct {
	options LedgerOptions
	address string
}

// Check returns an error for bad options.
func (o LedgerOptions) Check() error {
	if o.URL == "" {
		if o.TokenFile != "" || o.AuthorityFile != "" {
			return errors.New("--ledger-token-file and --ledger-certificate-authority are for --ledger: add it")
		}
		return nil
	}
	address, err := url.Parse(o.URL)
	if err != nil || address.Scheme != "https" || address.Host == "" || address.User != nil {
		return fmt.Errorf("--ledger %s: write an https URL, such as https://croft-ledger.croft-system.svc", wording.EscapeLine(o.URL))
	}
	if o.TokenFile == "" {
		return errors.New("--ledger-token-file: name a file with a token for the ledger")
	}
	return nil
}

// newLedger returns nil without a URL.
func newLedger(o LedgerOptions) (*ledger, error) {
	if err := o.Check(); err != nil || o.URL == "" {
		return nil, err
	}
	return &ledger{o, strings.TrimSuffix(o.URL, "/") + budget.Path}, nil
}

// read returns the ledger's answer. The files are read each time, since both are renewed.
func (l *ledger) read(ctx context.Context) (*budget.Answer, error) {
	token, err := os.ReadFile(l.options.TokenFile)
	if err != nil {
		return nil, err
	}
	transport, err := l.newTransport()
	if err != nil {
		return nil, err
	}
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, l.address, nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	client := &http.Client{
		Timeout: ledgerTimeout, Transport: transport,
		// A redirect could lead the token to another server.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", l.address, response.Status)
	}
	answer := &budget.Answer{}
	if err := json.NewDecoder(io.LimitReader(response.Body, maxAnswer)).Decode(answer); err != nil {
		return nil, fmt.Errorf("%s: %w", l.address, err)
	}
	if answer.Month == "" || answer.Now.IsZero() || answer.Currency == "" {
		return nil, fmt.Errorf("%s: the answer has no month, time or currency", l.address)
	}
	return answer, nil
}

func (l *ledger) newTransport() (*http.Transport, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if l.options.AuthorityFile != "" {
		data, err := os.ReadFile(l.options.AuthorityFile)
		switch {
		case errors.Is(err, os.ErrNotExist): // the certificate has a public authority
		case err != nil:
			return nil, err
		default:
			config.RootCAs = x509.NewCertPool()
			if !config.RootCAs.AppendCertsFromPEM(data) {
				return nil, fmt.Errorf("%s: the file has no PEM certificate", l.options.AuthorityFile)
			}
		}
	}
	return &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true}, nil
}
