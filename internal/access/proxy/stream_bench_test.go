package proxy

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"syscall"
	"testing"
	"time"

	"k8s.io/apiserver/pkg/authentication/token/tokenfile"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/rest"
)

// These benchmarks compare the proxy with a minimal reverse proxy and with no proxy, all in
// one process with the client and the API server's side:
//
//	go test ./internal/access/proxy -run '^$' -bench 'Log|Get' -benchmem -cpuprofile cpu.out

// BenchmarkLog streams a log of 64 MiB.
func BenchmarkLog(b *testing.B) {
	const size = 64 << 20
	block := make([]byte, 1<<20)
	runBenchmark(b, "/api/v1/namespaces/shop/pods/web/log", size, func(w http.ResponseWriter, _ *http.Request) {
		for range size / len(block) {
			if _, err := w.Write(block); err != nil {
				return
			}
		}
	})
}

// BenchmarkGet gets a small object.
func BenchmarkGet(b *testing.B) {
	const size = 500
	object := make([]byte, size)
	runBenchmark(b, "/api/v1/namespaces/shop/configmaps/c", size, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(object)
	})
}

// runBenchmark gets a path of size bytes through the proxy, a minimal one, and none.
func runBenchmark(b *testing.B, path string, size int64, serve http.HandlerFunc) {
	b.Helper()
	upstream := httptest.NewUnstartedServer(serve)
	upstream.EnableHTTP2 = true
	upstream.StartTLS()
	b.Cleanup(upstream.Close)
	config := &rest.Config{Host: upstream.URL, TLSClientConfig: rest.TLSClientConfig{Insecure: true}}
	forward, err := newForwarder(config)
	if err != nil {
		b.Fatal(err)
	}
	ns := newNamespaces()
	tenancy, err := newTenancy(ns.access)
	if err != nil {
		b.Fatal(err)
	}
	croft := chain{
		authenticator: newRequestAuthenticator(tokenfile.New(map[string]*user.DefaultInfo{"janes": jane}), nil, nil), metrics: newMetrics(),
		next: withVisibleNamespaces(ns, withTenancy(tenancy, forward, withAllNamespaces(ns, forward))),
	}.buildHandler()
	target, err := url.Parse(upstream.URL)
	if err != nil {
		b.Fatal(err)
	}
	transport, err := rest.TransportFor(config)
	if err != nil {
		b.Fatal(err)
	}
	bare := &httputil.ReverseProxy{Transport: transport, FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }}
	for _, side := range []struct {
		name    string
		handler http.Handler
	}{{"croft", croft}, {"bare", bare}, {"direct", serve}} {
		b.Run(side.name, func(b *testing.B) {
			server := httptest.NewUnstartedServer(side.handler)
			server.EnableHTTP2 = true
			server.StartTLS()
			defer server.Close()
			b.SetBytes(size)
			b.ReportAllocs()
			before := measureCPUTime(b)
			for b.Loop() {
				getAll(b, server.Client(), server.URL+path, size)
			}
			b.ReportMetric(float64(measureCPUTime(b)-before)/float64(b.N)/1e3, "cpu-us/op")
		})
	}
}

func getAll(b *testing.B, client *http.Client, address string, size int64) {
	b.Helper()
	r, err := http.NewRequestWithContext(b.Context(), http.MethodGet, address, nil)
	if err != nil {
		b.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer janes")
	answer, err := client.Do(r)
	if err != nil {
		b.Fatal(err)
	}
	defer answer.Body.Close()
	if n, err := io.Copy(io.Discard, answer.Body); n != size || err != nil {
		b.Fatal(n, err)
	}
}

// measureCPUTime returns the processor time of the process, which varies less on a busy machine
// than the elapsed time.
func measureCPUTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
