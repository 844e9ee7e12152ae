package server

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
)

const (
	// headerTimeout and idleTimeout limit the time of a client, as in kube-apiserver.
	headerTimeout, idleTimeout = 32 * time.Second, 90 * time.Second
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
	certificate, err := certwatcher.New(s.CertFile, s.KeyFile)
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.Addr)
	if err != nil {
		return err
	}
	server := &http.Server{
		Handler: handler, TLSConfig: &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: certificate.GetCertificate},
		ReadHeaderTimeout: headerTimeout, ReadTimeout: headerTimeout, WriteTimeout: 2 * requestTimeout, IdleTimeout: idleTimeout,
		MaxHeaderBytes: maxHeader, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	errs := make(chan error, 2)
	go func() { errs <- certificate.Start(ctx) }()
	go func() { errs <- server.ServeTLS(listener, "", "") }()
	log.InfoContext(ctx, "listening", "addr", listener.Addr().String())
	select {
	case err = <-errs:
	case <-ctx.Done():
		draining, cancel := context.WithTimeout(context.WithoutCancel(ctx), drain)
		defer cancel()
		err = server.Shutdown(draining)
	}
	return errors.Join(err, server.Close())
}
