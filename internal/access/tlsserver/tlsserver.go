// Package tlsserver serves HTTPS until a context ends, with a certificate that is reloaded when
// its files change.
package tlsserver

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
)

const (
	// HeaderTimeout is the time limit for a client to send its request headers, as in
	// kube-apiserver.
	HeaderTimeout = 32 * time.Second
	// IdleTimeout is the time limit for an idle connection, as in kube-apiserver.
	IdleTimeout = 90 * time.Second
)

// Options configure the serving of one server.
type Options struct {
	// CertFile and KeyFile are the paths of the serving certificate and its key. Without
	// them, the server's TLSConfig has the certificate.
	CertFile, KeyFile string
	// Drain is how long open requests may continue after the context has ended.
	Drain time.Duration
	// Report is called with the address once the server listens.
	Report func(net.Addr)
}

// Serve serves requests at the server's address until ctx ends, and then drains the open ones.
// Servers without TLS, such as for probes, serve until the draining has ended.
func Serve(ctx context.Context, o Options, server *http.Server, plain ...*http.Server) error {
	errs := make(chan error, 2+len(plain))
	if o.CertFile != "" {
		certificate, err := certwatcher.New(o.CertFile, o.KeyFile)
		if err != nil {
			return err
		}
		server.TLSConfig.GetCertificate = certificate.GetCertificate
		go func() { errs <- certificate.Start(ctx) }()
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", server.Addr)
	if err != nil {
		return err
	}
	go func() { errs <- server.ServeTLS(listener, "", "") }()
	for _, other := range plain {
		go func() { errs <- other.ListenAndServe() }()
	}
	o.Report(listener.Addr())
	select {
	case err = <-errs:
	case <-ctx.Done():
		draining, cancel := context.WithTimeout(context.WithoutCancel(ctx), o.Drain)
		defer cancel()
		if err = server.Shutdown(draining); errors.Is(err, context.DeadlineExceeded) {
			err = nil // long-running requests such as watches reconnect to another replica
		}
	}
	err = errors.Join(err, server.Close())
	for _, other := range plain {
		err = errors.Join(err, other.Close())
	}
	return err
}
