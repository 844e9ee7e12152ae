package proxy

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"time"

	"croft.dev/croft/internal/access/tlsserver"
)

// Serving configures the proxy's listeners.
type Serving struct {
	// Addr is the address for users, with TLS: host:port, or :port for all interfaces.
	Addr string
	// CertFile and KeyFile are the paths of the serving certificate and its key, which are
	// reloaded when they change.
	CertFile, KeyFile string
	// HealthAddr is the address of /healthz, /readyz and /metrics, without TLS; "0"
	// disables them.
	HealthAddr string
	// Drain is how long open requests (watches, logs, exec) may continue after the proxy
	// has received the signal to stop.
	Drain time.Duration
}

// Serve serves requests until ctx ends, and then drains the open ones.
func (s Serving) Serve(ctx context.Context, proxy *Proxy, clients *tls.Config) error {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if clients != nil {
		config = clients.Clone()
	}
	server := &http.Server{
		Addr: s.Addr, Handler: proxy, TLSConfig: config,
		ReadHeaderTimeout: tlsserver.HeaderTimeout, IdleTimeout: tlsserver.IdleTimeout,
	}
	var health []*http.Server
	if s.HealthAddr != "0" {
		health = []*http.Server{{
			Addr: s.HealthAddr, Handler: newHealthHandler(ctx, proxy), ReadHeaderTimeout: tlsserver.HeaderTimeout,
		}}
	}
	return tlsserver.Serve(ctx, tlsserver.Options{
		CertFile: s.CertFile, KeyFile: s.KeyFile, Drain: s.Drain,
		Report: func(address net.Addr) {
			proxy.log.InfoContext(ctx, "listening", "addr", address.String(), "health", s.HealthAddr)
		},
	}, server, health...)
}

// newHealthHandler serves probes and metrics. /readyz fails until the keys of the identity
// providers have been fetched, and once ctx has ended, so that no new connections arrive.
func newHealthHandler(ctx context.Context, proxy *Proxy) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/healthz", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("/readyz", func(w http.ResponseWriter, _ *http.Request) {
		if ctx.Err() != nil {
			http.Error(w, "stopping", http.StatusServiceUnavailable)
		} else if err := proxy.checkReady(); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		}
	})
	mux.Handle("/metrics", proxy.metrics.newHandler())
	return mux
}
