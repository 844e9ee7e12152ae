package server

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"time"

	"croft.dev/croft/internal/access/tlsserver"
)

const (
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
		return fmt.Errorf("%s is not an address: write HOST:PORT, such as 127.0.0.1:9443", s.Addr)
	}
	ip := net.ParseIP(host)
	if s.CertFile == "" && host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return fmt.Errorf("%s is not a loopback address: other machines need a certificate that they can check: set --tls-cert-file and --tls-private-key-file", s.Addr)
	}
	return nil
}

// Serve serves requests until ctx ends. Browsers send tokens, so there is no listener without TLS.
func (s Serving) Serve(ctx context.Context, handler http.Handler, log *slog.Logger) error {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if s.CertFile == "" {
		certificate, err := signCertificate(time.Now())
		if err != nil {
			return err
		}
		config.Certificates = []tls.Certificate{certificate}
	}
	server := &http.Server{
		Addr: s.Addr, Handler: handler, TLSConfig: config,
		ReadHeaderTimeout: tlsserver.HeaderTimeout, ReadTimeout: tlsserver.HeaderTimeout,
		WriteTimeout: 2 * requestTimeout, IdleTimeout: tlsserver.IdleTimeout,
		// Browsers that do not trust the certificate yet cause many messages.
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	return tlsserver.Serve(ctx, tlsserver.Options{
		CertFile: s.CertFile, KeyFile: s.KeyFile, Drain: drain,
		Report: func(address net.Addr) {
			log.InfoContext(ctx, "listening", "url", "https://"+address.String(), "selfSigned", s.CertFile == "")
		},
	}, server)
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
