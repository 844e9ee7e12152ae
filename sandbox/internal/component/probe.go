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

// prober asks components for their health over TLS, as a client that their
// authority signed for.
type prober struct {
	client http.Client
}

// probeClient is the certificate that the supervisor's own questions carry.
const probeClient = "probe"

func (s *Sandbox) prober(authority *pki.Authority, client string) (*prober, error) {
	cert, err := tls.LoadX509KeyPair(s.cert(client), s.key(client))
	if err != nil {
		return nil, err
	}
	return newProber(&tls.Config{
		MinVersion:   tls.VersionTLS12,
		RootCAs:      authority.Pool(),
		Certificates: []tls.Certificate{cert},
	}), nil
}

func newProber(config *tls.Config) *prober {
	return &prober{client: http.Client{Transport: &http.Transport{
		TLSClientConfig: config,
		IdleConnTimeout: 30 * time.Second,
	}}}
}

// get succeeds if the answer is 200.
func (p *prober) get(ctx context.Context, url string) error {
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
		return fmt.Errorf("%s answers %s: %s", url, resp.Status, failures(string(body)))
	}
	return nil
}

// failures picks what failed out of the list of checks that Kubernetes
// components answer with.
func failures(body string) string {
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

// answers makes a readiness check of a component that answers at a path.
func (p *prober) answers(address func() string, path string) func(context.Context) error {
	return func(ctx context.Context) error { return p.get(ctx, address()+path) }
}

// isReady makes a readiness check of a component that answers at /readyz.
func (p *prober) isReady(address func() string) func(context.Context) error {
	return p.answers(address, "/readyz")
}
