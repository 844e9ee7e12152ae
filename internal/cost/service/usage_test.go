package service

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"
)

// TestUsageReader asks an API server each minute for half an hour. An absent metrics-server is no error, and is asked every
// ten minutes. One that does not answer is an error, and is asked each minute.
func TestUsageReader(t *testing.T) {
	const list = `{"items": [{"metadata": {"name": "web", "namespace": "shop"}, "containers": [{"usage": {"cpu": "1m", "memory": "1Mi"}}]}]}`
	for name, c := range map[string]struct {
		status               int
		body                 string
		requests, pods, errs int
		logs                 int
	}{
		"served":          {http.StatusOK, list, 30, 30, 0, 0},
		"absent":          {http.StatusNotFound, "404 page not found", 3, 0, 0, 1},
		"without rights":  {http.StatusForbidden, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "code": 403}`, 3, 0, 0, 1},
		"does not answer": {http.StatusServiceUnavailable, "no endpoints", 30, 0, 30, 0},
		"is no list":      {http.StatusOK, "<html>", 30, 0, 30, 0},
		"has no pods":     {http.StatusOK, `{"items": []}`, 30, 0, 0, 0},
	} {
		requests := 0
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			requests++
			if r.Method != http.MethodGet || r.URL.Path != "/apis/metrics.k8s.io/v1beta1/pods" {
				t.Errorf("%s: %s %s", name, r.Method, r.URL)
			}
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(c.status)
			_, _ = w.Write([]byte(c.body))
		}))
		d, err := discovery.NewDiscoveryClientForConfig(&rest.Config{Host: s.URL, QPS: -1})
		if err != nil {
			t.Fatal(err)
		}
		var logged strings.Builder
		clock := clocktesting.NewFakeClock(time.Unix(0, 0))
		reader := &usageReader{client: d.RESTClient(), clock: clock, log: slog.New(slog.NewTextHandler(&logged, nil))}
		pods, errs := 0, 0
		for range 30 {
			found, err := reader.read(t.Context())
			pods += len(found)
			if err != nil {
				errs++
			}
			clock.Step(time.Minute)
		}
		s.Close()
		if logs := strings.Count(logged.String(), "\n"); requests != c.requests || pods != c.pods || errs != c.errs || logs != c.logs {
			t.Errorf("%s: %d requests, %d pods, %d errors, %d lines of log: %s", name, requests, pods, errs, logs, logged.String())
		}
	}
}
