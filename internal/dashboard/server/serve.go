package server

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
)

const (
	// headerTimeout, requestTimeout and idleTimeout limit the time of a client, as in
	// kube-apiserver.
	headerTimeout, idleTimeout = 32 * time.Second, 90 * time.Second
	// drain is the time for open requests after the signal to stop.
	drain = 10 * time.Second
	// selfSignedLifetime is longer than any trial on a developer's machine.
	selfSignedLifetime = 30 * 24 * time.Hour
)

// Serving configures the listener.
type Serving struct {
	// Addr is the address for browsers: HOST:PORT.
	Addr string
	// CertFile and KeyFile are the paths of the serving certificate and its key, which are
	// reloaded when they change. Without them, the certificate is self-signed, for the
	// loopback interface only.
	CertFile, KeyFile string
}

// Check returns an error if a self-signed certificate would be served to other machines.
func (s Serving) Check() error {
	host, _, err := net.SplitHostPort(s.Addr)
	if err != nil {
		return fmt.Errorf("%s is no HOST:PORT: write, for example, 127.0.0.1:9443", s.Addr)
	}
	ip := net.ParseIP(host)
	if s.CertFile == "" && host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return fmt.Errorf("%s is no loopback address: other machines need a certificate that they can check: set --tls-cert-file and --tls-private-key-file", s.Addr)
	}
	return nil
}

// Serve serves requests until ctx ends. Browsers send tokens, so there is no listener without TLS.
func (s Serving) Serve(ctx context.Context, handler http.Handler, log *slog.Logger) error {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	errs := make(chan error, 2)
	if s.CertFile == "" {
		certificate, err := signCertificate(time.Now())
		if err != nil {
			return err
		}
		config.Certificates = []tls.Certificate{certificate}
	} else {
		files, err := certwatcher.New(s.CertFile, s.KeyFile)
		if err != nil {
			return err
		}
		config.GetCertificate = files.GetCertificate
		go func() { errs <- files.Start(ctx) }()
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.Addr)
	if err != nil {
		return err
	}
	server := &http.Server{
		Handler: handler, TLSConfig: config, ReadHeaderTimeout: headerTimeout, ReadTimeout: headerTimeout, WriteTimeout: 2 * requestTimeout, IdleTimeout: idleTimeout,
		// Browsers that do not trust the certificate yet cause many messages.
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	go func() { errs <- server.ServeTLS(listener, "", "") }()
	log.InfoContext(ctx, "listening", "url", "https://"+listener.Addr().String(), "selfSigned", s.CertFile == "")
	select {
	case err = <-errs:
	case <-ctx.Done():
		draining, cancel := context.WithTimeout(context.WithoutCancel(ctx), drain)
		defer cancel()
		err = server.Shutdown(draining)
	}
	return errors.Join(err, server.Close())
}

// signCertificate returns a self-signed certificate for the loopback interface.
func signCertificate(now time.Time) (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()), Subject: pkix.Name{CommonName: "croft dashboard"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(selfSignedLifetime),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, err
}
