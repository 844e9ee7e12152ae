package server

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"time"

	"croft.dev/croft/internal/access/tlsserver"
)

const (
	// drain is the time for open requests after the signal to stop.
	drain = 10 * time.Second
	// maxHeader is enough for a token with many groups.
	maxHeader = 64 << 10
)

// Serving configures the listener.
type Serving struct {
	// Addr is the address for users: HOST:PORT, or :PORT for all interfaces.
	Addr string
	// CertFile and KeyFile are the paths of the serving certificate and its key, which are
	// reloaded when they change. There is no listener without TLS: users send tokens.
	CertFile, KeyFile string
}

// Serve serves requests until ctx ends.
func (s Serving) Serve(ctx context.Context, handler http.Handler, log *slog.Logger) error {
	server := &http.Server{
		Addr: s.Addr, Handler: handler, TLSConfig: &tls.Config{MinVersion: tls.VersionTLS12},
		ReadHeaderTimeout: tlsserver.HeaderTimeout, ReadTimeout: tlsserver.HeaderTimeout,
		WriteTimeout: 2 * requestTimeout, IdleTimeout: tlsserver.IdleTimeout,
		MaxHeaderBytes: maxHeader, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	return tlsserver.Serve(ctx, tlsserver.Options{
		CertFile: s.CertFile, KeyFile: s.KeyFile, Drain: drain,
		Report: func(address net.Addr) { log.InfoContext(ctx, "listening", "addr", address.String()) },
	}, server)
}
