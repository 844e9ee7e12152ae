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
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"

	"croft.dev/croft/internal/access/proxy"
	"croft.dev/croft/internal/cost/report"
	"croft.dev/croft/internal/cost/server"
	"croft.dev/croft/internal/operate/ledgerclient"
)

const (
	// ledgerTimeout limits a request to the ledger, and maxAnswer the size of its answer.
	ledgerTimeout = time.Minute
	maxAnswer     = 64 << 20
)

// proxyLedger is the value of --ledger for the ledger behind croft proxy, the kubeconfig's server.
const proxyLedger = "proxy"

// errNoLedger means that another program answers at the URL of a ledger.
var errNoLedger = errors.New("is no ledger of croft")

// useProxy sets the URL at which croft proxy, as the kubeconfig's server, has its ledger.
func (o *costOptions) useProxy(a *app) error {
	config, err := a.loadConfig()
	if err != nil {
		return toFailure(err)
	}
	server, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return toFailure(err)
	}
	o.ledger, o.proxied = server.JoinPath(proxy.LedgerPath).String(), true
	if _, err := ledgerclient.ParseAddress(o.ledger); err != nil {
		return fmt.Errorf("--ledger %s: the kubeconfig's server is %s: %w", proxyLedger, escapeLine(server.String()), err)
	}
	return nil
}

// ledgerAnswer is an answer of the ledger: a report or an error.
type ledgerAnswer struct {
	report.Report
	Error string `json:"error"`
}

// runLedgerCost prints the report of a ledger.
func (a *app) runLedgerCost(ctx context.Context, o costOptions) error {
	response, err := a.queryLedger(ctx, o, server.Path)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	answer, err := o.readAnswer(response, json.NewDecoder(io.LimitReader(response.Body, maxAnswer)))
	if err != nil {
		return err
	}
	return a.printCost(&answer.Report, o.output)
}

// queryLedger requests a resource of the ledger. If the user may not read the cost of the cluster and has named
// no namespace, the answer is for the tenant of the context's namespace.
func (a *app) queryLedger(ctx context.Context, o costOptions, path string) (*http.Response, error) {
	address, err := ledgerclient.ParseAddress(o.ledger)
	if err != nil {
		return nil, fmt.Errorf("--ledger %s: %w", escapeLine(o.ledger), err)
	}
	address = address.JoinPath(path)
	client, err := a.newLedgerClient(o)
	if err != nil {
		return nil, err
	}
	response, err := o.askLedger(ctx, client, address, o.namespace)
	if err == nil && response.StatusCode == http.StatusForbidden && o.namespace == "" {
		_ = response.Body.Close()
		if o.bill != "" {
			return nil, failuref("you may not read the cost of the whole cluster, with which a bill is compared: ask a platform admin or an auditor")
		}
		response, err = o.askLedger(ctx, client, address, a.currentNamespace())
	}
	return response, toFailure(err)
}

// newLedgerClient returns a client that sends the kubeconfig's credentials, but connects to the ledger: the
// certificate authority and the name of the API server's certificate do not apply, unless the server is croft proxy.
// It follows no redirect, which could lead the token to another server.
func (a *app) newLedgerClient(o costOptions) (*http.Client, error) {
	config, err := a.loadConfig()
	if err != nil {
		return nil, toFailure(err)
	}
	if !o.proxied {
		config.TLSClientConfig = rest.TLSClientConfig{}
	}
	if o.authority != "" {
		if config.CAData, err = os.ReadFile(o.authority); err != nil {
			return nil, fmt.Errorf("--certificate-authority: %w", err)
		}
		if _, err := cert.ParseCertsPEM(config.CAData); err != nil {
			return nil, fmt.Errorf("--certificate-authority %s: the file has no PEM certificate", escapeLine(o.authority))
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

// askLedger sends one request. The caller closes the body.
func (o *costOptions) askLedger(ctx context.Context, c *http.Client, address *url.URL, namespace string) (*http.Response, error) {
	query := url.Values{"since": {o.since.String()}, "by": {o.by}}
	if namespace != "" {
		query.Set("namespace", namespace)
	}
	target := *address
	target.RawQuery = query.Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), nil)
	if err != nil {
		return nil, err
	}
	response, err := c.Do(request)
	if err != nil {
		var failed *url.Error
		if errors.As(err, &failed) {
			err = failed.Err // without the query
		}
		return nil, fmt.Errorf("cannot reach the ledger at %s: %w: check --ledger and --certificate-authority", o.ledger, err)
	}
	return response, nil
}
