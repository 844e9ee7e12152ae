package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"

	"croft.dev/croft/internal/cost/report"
	"croft.dev/croft/internal/cost/server"
)

const (
	// ledgerTimeout limits a request to the ledger, and maxAnswer the size of its answer.
	ledgerTimeout = time.Minute
	maxAnswer     = 64 << 20
)

// ledgerAnswer is an answer of the ledger: a report or an error.
type ledgerAnswer struct {
	report.Report
	Error string `json:"error"`
}

// runLedgerCost prints the answer of a ledger. If the user may not read the cost of the cluster and has named
// no namespace, it is the cost of the tenant of the context's namespace.
func (a *app) runLedgerCost(ctx context.Context, o costOptions) error {
	address, err := url.Parse(o.ledger)
	if err != nil || address.Scheme != "https" || address.Host == "" || address.User != nil {
		return fmt.Errorf("--ledger %s: write an https URL, such as https://ledger.example.org", escapeLine(o.ledger))
	}
	client, err := a.newLedgerClient(o.authority)
	if err != nil {
		return err
	}
	status, answer, err := o.askLedger(ctx, client, address, o.namespace)
	if err == nil && status == http.StatusForbidden && o.namespace == "" {
		status, answer, err = o.askLedger(ctx, client, address, a.currentNamespace())
	}
	switch {
	case err != nil:
		return toFailure(err)
	case status == http.StatusUnauthorized:
		return failuref("the ledger does not accept your credentials: %s: log in again (`croft login`), or name a user that has a "+
			"token with --kubeconfig or --context: the ledger accepts no client certificates", escapeLine(answer.Error))
	case status != http.StatusOK:
		return failuref("the ledger at %s: %s", o.ledger, escapeLine(answer.Error))
	}
	return a.printCost(&answer.Report, o.output)
}

// newLedgerClient returns a client that sends the kubeconfig's credentials, but connects to the ledger: the
// certificate authority and the name of the API server's certificate do not apply. It follows no redirect,
// which could lead the token to another server.
func (a *app) newLedgerClient(authority string) (*http.Client, error) {
	config, err := a.loadConfig()
	if err != nil {
		return nil, toFailure(err)
	}
	config.TLSClientConfig = rest.TLSClientConfig{}
	if authority != "" {
		if config.CAData, err = os.ReadFile(authority); err != nil {
			return nil, fmt.Errorf("--certificate-authority: %w", err)
		}
		if _, err := cert.ParseCertsPEM(config.CAData); err != nil {
			return nil, fmt.Errorf("--certificate-authority %s: the file has no PEM certificate", escapeLine(authority))
		}
	}
	config.Timeout = ledgerTimeout
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, toFailure(err)
	}
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return client, nil
}

// askLedger sends one request.
func (o costOptions) askLedger(ctx context.Context, c *http.Client, address *url.URL, namespace string) (int, ledgerAnswer, error) {
	var answer ledgerAnswer
	query := url.Values{"since": {o.since.String()}, "by": {o.by}}
	if namespace != "" {
		query.Set("namespace", namespace)
	}
	target := *address
	target.Path, target.RawQuery = strings.TrimSuffix(address.Path, "/")+server.Path, query.Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), nil)
	if err != nil {
		return 0, answer, err
	}
	response, err := c.Do(request)
	if err != nil {
		var failed *url.Error
		if errors.As(err, &failed) {
			err = failed.Err // without the query
		}
		return 0, answer, fmt.Errorf("cannot reach the ledger at %s: %w: check --ledger and --certificate-authority", o.ledger, err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return 0, answer, err
	}
	if err := json.Unmarshal(body, &answer); err != nil || answer.Error == "" && answer.Total == nil {
		return 0, answer, fmt.Errorf("%s is no ledger of croft: it answers with %s", o.ledger, response.Status)
	}
	return response.StatusCode, answer, nil
}
