package budgets

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"time"

	"croft.dev/croft/internal/declare/budget"
	"croft.dev/croft/internal/declare/wording"
	"croft.dev/croft/internal/operate/ledgerclient"
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
	address *url.URL
}

// Check returns an error for bad options.
func (o LedgerOptions) Check() error {
	_, err := newLedger(o)
	return err
}

// newLedger returns nil without a URL.
func newLedger(o LedgerOptions) (*ledger, error) {
	if o.URL == "" {
		if o.TokenFile != "" || o.AuthorityFile != "" {
			return nil, errors.New("--ledger-token-file and --ledger-certificate-authority are for --ledger: add it")
		}
		return nil, nil
	}
	address, err := ledgerclient.ParseAddress(o.URL)
	if err != nil {
		return nil, fmt.Errorf("--ledger %s: %w", wording.EscapeLine(o.URL), err)
	}
	if o.TokenFile == "" {
		return nil, errors.New("--ledger-token-file: name a file with a token for the ledger")
	}
	return &ledger{o, address}, nil
}

// read returns the ledger's answer. The files are read each time, since both are renewed.
func (l *ledger) read(ctx context.Context) (*budget.Answer, error) {
	token, err := os.ReadFile(l.options.TokenFile)
	if err != nil {
		return nil, err
	}
	authorities, err := ledgerclient.ReadAuthorities(l.options.AuthorityFile)
	if err != nil {
		return nil, err
	}
	client := ledgerclient.New(l.address, authorities)
	defer client.Close()
	answer := &budget.Answer{}
	if err := client.Get(ctx, budget.Path, nil, strings.TrimSpace(string(token)), answer); err != nil {
		return nil, fmt.Errorf("%s: %w", l.address, err)
	}
	if answer.Month == "" || answer.Now.IsZero() || answer.Currency == "" {
		return nil, fmt.Errorf("%s: the answer has no month, time or currency", l.address)
	}
	return answer, nil
}
