package proxy

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
)

const (
	// headerTimeout is the time limit for a client to send its request headers, and
	// idleTimeout for an idle connection; both as in kube-apiserver.
	headerTimeout, idleTimeout = 32 * time.Second, 90 * time.Second
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
	certificate, err := certwatcher.New(s.CertFile, s.KeyFile)
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.Addr)
	if err != nil {
		return err
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if clients != nil {
		config = clients.Clone()
	}
	config.GetCertificate = certificate.GetCertificate
	server := &http.Server{Handler: proxy, TLSConfig: config, ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout}
	var stopping atomic.Bool
	health := &http.Server{Addr: s.HealthAddr, Handler: newHealthHandler(proxy, &stopping), ReadHeaderTimeout: headerTimeout}
	errs := make(chan error, 3)
	go func() { errs <- certificate.Start(ctx) }()
	go func() { errs <- server.ServeTLS(listener, "", "") }()
	proxy.log.InfoContext(ctx, "listening", "addr", listener.Addr().String(), "health", s.HealthAddr)
	if s.HealthAddr != "0" {
		go func() { errs <- health.ListenAndServe() }()
	}
	select {
	case err = <-errs:
	case <-ctx.Done():
		stopping.Store(true)
		draining, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.Drain)
		defer cancel()
		if err = server.Shutdown(draining); errors.Is(err, context.DeadlineExceeded) {
			err = nil // long-running requests such as watches reconnect to another replica
		}
	}
	return errors.Join(err, server.Close(), health.Close())
}

// newHealthHandler serves probes and metrics. /readyz fails until the keys of the identity
// providers have been fetched, and during shutdown, so that no new connections arrive.
func newHealthHandler(proxy *Proxy, stopping *atomic.Bool) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/healthz", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("/readyz", func(w http.ResponseWriter, _ *http.Request) {
		if stopping.Load() {
			http.Error(w, "stopping", http.StatusServiceUnavailable)
		} else if err := proxy.checkReady(); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		}
	})
	mux.Handle("/metrics", proxy.metrics.newHandler())
	return mux
}
