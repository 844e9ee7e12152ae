// Package costs asks croft ledger for the costs that a user may read, with the user's own token.
package costs

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"croft.dev/croft/internal/cost/report"
	"croft.dev/croft/internal/cost/server"
	"croft.dev/croft/internal/operate/ledgerclient"
)

// months is the number of months of a history.
const months = 6

// ErrForbidden means that the user may not read these costs. ErrUnsupported means that the ledger is older
// than the dashboard, and has no histories. ErrUnknownUser means that the ledger's API server does not accept
// the token, which another issuer has signed.
var (
	ErrUnknownUser = errors.New("the ledger does not accept the token")
	ErrForbidden   = errors.New("the user may not read these costs")
	ErrUnsupported = errors.New("the ledger has no histories: its version of croft is older")
)

// Ledger is a croft ledger.
type Ledger struct{ client *ledgerclient.Client }

// New returns the ledger at an https URL. Without certificate authorities, the system's are used.
func New(address string, authorities *x509.CertPool) (*Ledger, error) {
	parsed, err := ledgerclient.ParseAddress(address)
	if err != nil {
		return nil, fmt.Errorf("%q: %w", address, err)
	}
	return &Ledger{ledgerclient.New(parsed, authorities)}, nil
}

// ReadHistory reads the costs of the tenant of a namespace or, with an empty namespace, of the cluster.
func (l *Ledger) ReadHistory(ctx context.Context, token, namespace, by string, now time.Time) (*report.History, error) {
	since := now.Sub(report.FindHistoryStart(months, now)).Truncate(time.Second)
	query := url.Values{"by": {by}, "since": {since.String()}}
	if namespace != "" {
		query.Set("namespace", namespace)
	}
	h := &report.History{}
	err := l.client.Get(ctx, server.HistoryPath, query, token, h)
	switch {
	case err == nil:
		return h, nil
	case errors.Is(err, ledgerclient.StatusError(http.StatusUnauthorized)):
		return nil, ErrUnknownUser
	case errors.Is(err, ledgerclient.StatusError(http.StatusForbidden)):
		return nil, ErrForbidden
	case errors.Is(err, ledgerclient.StatusError(http.StatusNotFound)):
		return nil, ErrUnsupported
	default:
		return nil, err
	}
}
