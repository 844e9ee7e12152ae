package tlsserver

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// TestServe stops a server during a request. The request may continue for as long as the drain
// allows, and the end of the drain is no error.
func TestServe(t *testing.T) {
	for name, c := range map[string]struct {
		drain     time.Duration
		completes bool
	}{"a request that completes": {time.Minute, true}, "a request that is ended": {time.Millisecond, false}} {
		t.Run(name, func(t *testing.T) {
			started, finish := make(chan struct{}), make(chan struct{})
			example := httptest.NewTLSServer(http.NotFoundHandler()) // for its certificate, and a client that trusts it
			defer example.Close()
			server := &http.Server{
				Addr: "127.0.0.1:0", TLSConfig: &tls.Config{Certificates: example.TLS.Certificates},
				Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					close(started)
					<-finish
					_, _ = io.WriteString(w, "done")
				}),
			}
			ctx, stop := context.WithCancel(t.Context())
			addresses, served := make(chan net.Addr, 1), make(chan error, 1)
			go func() {
				served <- Serve(ctx, Options{Drain: c.drain, Report: func(a net.Addr) { addresses <- a }}, server)
			}()
			url := "https://" + (<-addresses).String()
			responses := make(chan error, 1)
			go func() {
				response, err := example.Client().Get(url)
				if err == nil {
					_, err = io.ReadAll(response.Body)
					response.Body.Close()
				}
				responses <- err
			}()
			<-started
			stop()
			if c.completes {
				close(finish)
			} else {
				defer close(finish)
			}
			if err := <-served; err != nil {
				t.Error(err)
			}
			if err := <-responses; (err == nil) != c.completes {
				t.Errorf("the request ended with %v", err)
			}
		})
	}
}

// TestServePlain expects that the failure of a server without TLS ends the other one.
func TestServePlain(t *testing.T) {
	taken, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = taken.Close() })
	server := &http.Server{Addr: "127.0.0.1:0", TLSConfig: &tls.Config{MinVersion: tls.VersionTLS12}}
	server.TLSConfig.Certificates = []tls.Certificate{{}}
	err = Serve(t.Context(), Options{Report: func(net.Addr) {}}, server, &http.Server{Addr: taken.Addr().String()})
	if err == nil {
		t.Error("no error")
	}
}
