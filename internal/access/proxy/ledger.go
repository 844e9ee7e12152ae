package proxy

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"croft.dev/croft/internal/operate/ledgerclient"
)

const (
	// LedgerPath begins the paths of croft ledger's resources at the proxy. The API server's own paths begin with a
	// word, and paths of API groups with /apis, so that it cannot have this path.
	LedgerPath = "/croft.dev/ledger"
	// ledgerTimeout limits a request to the ledger, with its answer.
	ledgerTimeout = time.Minute
)

// ledgerResources are the paths of the ledger's resources for users. Its metrics and budgets are for programs in
// the cluster.
var ledgerResources = []string{"/v1/costs", "/v1/charges", "/v1/history"}

// ledger forwards requests to croft ledger, with the caller's own token. The ledger decides which costs the caller
// may read: the proxy asserts no identity to it.
type ledger struct {
	address *url.URL
	// authorityFile has the CA bundle of the ledger's certificate, as for ledgerclient.ReadAuthorities.
	authorityFile string
	log           *slog.Logger
}

// withLedger answers all requests below LedgerPath by the ledger, and no others.
func withLedger(l *ledger, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == LedgerPath || strings.HasPrefix(r.URL.Path, LedgerPath+"/") {
			l.ServeHTTP(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// ServeHTTP implements http.Handler. The request to the ledger is a new one: it has a path of ledgerResources, the
// query and the token. No spelling of the path leads elsewhere, and no other header reaches the ledger.
func (l *ledger) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	n := slices.Index(ledgerResources, strings.TrimPrefix(r.URL.EscapedPath(), LedgerPath))
	if n < 0 {
		refuseCosts(w, http.StatusNotFound, "croft proxy has only "+strings.Join(ledgerResources, ", ")+" below "+LedgerPath)
		return
	}
	if r.Method != http.MethodGet {
		w.Header().Set("Allow", http.MethodGet)
		refuseCosts(w, http.StatusMethodNotAllowed, "write a GET request")
		return
	}
	token := findToken(r.Context())
	if token == "" {
		refuseCosts(w, http.StatusUnauthorized, "croft ledger needs a token: client certificates do not work")
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), ledgerTimeout)
	defer cancel()
	l.forward(ctx, w, ledgerResources[n], r.URL.RawQuery, token)
}

// forward responds with the status, the type and the body of the ledger's answer, and with none of its other headers.
func (l *ledger) forward(ctx context.Context, w http.ResponseWriter, path, query, token string) {
	// Requests for costs are rare, so each one has a connection of its own, with the present CA bundle.
	authorities, err := ledgerclient.ReadAuthorities(l.authorityFile)
	if err != nil {
		l.refuseUnreachable(ctx, w, err)
		return
	}
	client := ledgerclient.New(l.address, authorities)
	defer client.Close()
	answer, err := client.Open(ctx, path, query, token)
	if err != nil {
		l.refuseUnreachable(ctx, w, err)
		return
	}
	defer answer.Body.Close()
	if answer.StatusCode < http.StatusOK || answer.StatusCode >= http.StatusMultipleChoices && answer.StatusCode < http.StatusBadRequest {
		refuseCosts(w, http.StatusBadGateway, "croft proxy expects costs, and croft ledger answers with "+answer.Status)
		return
	}
	w.Header().Set("Content-Type", answer.Header.Get("Content-Type"))
	w.WriteHeader(answer.StatusCode)
	if _, err := io.Copy(w, answer.Body); err != nil {
		panic(http.ErrAbortHandler) // the client must not take a part for the whole answer
	}
}

// refuseUnreachable responds without details of the network, which are in the log.
func (l *ledger) refuseUnreachable(ctx context.Context, w http.ResponseWriter, err error) {
	l.log.ErrorContext(ctx, "cannot reach the ledger", "error", err)
	refuseCosts(w, http.StatusServiceUnavailable, "croft proxy cannot reach croft ledger: the proxy's log has the error")
}

// refuseCosts writes an error as the ledger does.
func refuseCosts(w http.ResponseWriter, status int, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"error": message})
}
