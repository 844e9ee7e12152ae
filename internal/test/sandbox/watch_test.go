package sandbox

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/internal/declare/scheme"
)

// failing is a test whose failures are sent to a channel instead of failing it.
type failing struct {
	testing.TB
	failures chan string
}

func (f failing) Errorf(format string, args ...any) { f.failures <- fmt.Sprintf(format, args...) }

// TestWatch ends a watch from the server's side: once so that it can resume, and once with the
// response that its resource version has expired. It fails if an event in between is missed, or
// if the second does not fail the watching test.
func TestWatch(t *testing.T) {
	EndToEnd(t)
	c := Start(t, Options{Components: APIOnly})
	transport, err := rest.TransportFor(c.Config)
	if err != nil {
		t.Fatal(err)
	}
	address, err := url.Parse(c.Config.Host)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(address)
	proxy.Transport, proxy.FlushInterval = transport, -1
	var expired atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !r.URL.Query().Has("watch") {
			proxy.ServeHTTP(w, r)
			return
		}
		if expired.Load() {
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, `{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410}}`) //nolint:errcheck // the watch sees it
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	admin, err := client.New(c.Config, client.Options{Scheme: scheme.New()})
	if err != nil {
		t.Fatal(err)
	}
	create := func(name string) {
		t.Helper()
		if err := admin.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}); err != nil {
			t.Fatal(err)
		}
	}
	wait := func(what string, of <-chan string) string {
		t.Helper()
		select {
		case got := <-of:
			return got
		case <-time.After(time.Minute):
			t.Fatalf("%s did not come", what)
			return ""
		}
	}

	create("before")
	seen, observer := make(chan string, 10), failing{TB: t, failures: make(chan string, 10)}
	stop := Watch(observer, &rest.Config{Host: server.URL}, &corev1.ConfigMapList{}, func(event watch.EventType, o client.Object) {
		seen <- string(event) + " " + o.GetName()
	}, client.InNamespace("default"))
	defer stop()
	if got := wait("what is there", seen); got != " before" {
		t.Errorf("it saw %q", got)
	}
	create("first")
	got := []string{wait("the first event", seen)}
	server.CloseClientConnections()
	create("meanwhile")
	got = append(got, wait("the event of the meantime", seen))
	if want := []string{"ADDED first", "ADDED meanwhile"}; !slices.Equal(got, want) {
		t.Errorf("it saw %q; want %q", got, want)
	}
	expired.Store(true)
	server.CloseClientConnections()
	t.Log(wait("a failure", observer.failures))
	if len(seen) > 0 || len(observer.failures) > 0 {
		t.Errorf("it saw %d more events, and failed %d times more", len(seen), len(observer.failures))
	}
}
