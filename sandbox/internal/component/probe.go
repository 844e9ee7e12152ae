package component

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"croft.dev/croft/sandbox/internal/pki"
)

// prober requests the components' health checks, with a client certificate of their CA if
// they serve TLS.
type prober struct {
	client http.Client
}

// probeClient is the name of the client certificate of the supervisor's health checks.
const probeClient = "probe"

func (s *Sandbox) newTLSProber(authority *pki.Authority, client string) (*prober, error) {
	cert, err := tls.LoadX509KeyPair(s.certPath(client), s.keyPath(client))
	if err != nil {
		return nil, err
	}
	return newProber(&tls.Config{
		MinVersion:   tls.VersionTLS12,
		RootCAs:      authority.NewPool(),
		Certificates: []tls.Certificate{cert},
	}), nil
}

func newProber(config *tls.Config) *prober {
	return &prober{client: http.Client{Transport: &http.Transport{
		TLSClientConfig: config,
		IdleConnTimeout: 30 * time.Second,
	}}}
}

// checkURL returns an error unless the status of the answer is 200.
func (p *prober) checkURL(ctx context.Context, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := p.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 4<<10))
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s: %s", url, resp.Status, listFailures(string(body)))
	}
	return nil
}

// listFailures returns the failed checks of a Kubernetes component's answer, or the whole answer if
// it lists none.
func listFailures(body string) string {
	var failed []string
	for line := range strings.Lines(body) {
		if strings.HasPrefix(line, "[-]") {
			failed = append(failed, strings.TrimSpace(strings.TrimPrefix(line, "[-]")))
		}
	}
	if len(failed) == 0 {
		return strings.TrimSpace(body)
	}
	return strings.Join(failed, "; ")
}

// checkPath returns a readiness check that requests a path of a component.
func (p *prober) checkPath(address func() string, path string) func(context.Context) error {
	return func(ctx context.Context) error { return p.checkURL(ctx, address()+path) }
}

// checkReadyz returns a readiness check that requests a component's /readyz.
func (p *prober) checkReadyz(address func() string) func(context.Context) error {
	return p.checkPath(address, "/readyz")
}
