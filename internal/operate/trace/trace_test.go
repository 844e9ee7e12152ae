package trace_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracev1 "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"croft.dev/croft/internal/operate/trace"
)

// collected are the spans that a collector has received.
type collected struct {
	collector.UnimplementedTraceServiceServer
	mu    sync.Mutex
	spans []*tracev1.Span
}

func (c *collected) Export(_ context.Context, r *collector.ExportTraceServiceRequest) (*collector.ExportTraceServiceResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, of := range r.ResourceSpans {
		for _, scope := range of.ScopeSpans {
			c.spans = append(c.spans, scope.Spans...)
		}
	}
	return &collector.ExportTraceServiceResponse{}, nil
}

// startCollector starts a collector on the loopback interface.
func startCollector(t *testing.T) (*collected, string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c, server := &collected{}, grpc.NewServer()
	collector.RegisterTraceServiceServer(server, c)
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return c, listener.Addr().String()
}

func (c *collected) listSpans(t *testing.T, prefix string) []*tracev1.Span {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(c.spans), func(s *tracev1.Span) bool { return !strings.HasPrefix(s.Name, prefix) })
}

// TestTraces expects a span for each reconcile, with its request to the API server below
// it, and no span for requests outside a reconcile.
func TestTraces(t *testing.T) {
	c, endpoint := startCollector(t)
	stop, err := trace.Start(t.Context(), trace.Options{Endpoint: endpoint, RatePerMillion: 1_000_000}, "v0.1.0")
	if err != nil {
		t.Fatal(err)
	}
	var parents []string
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		parents = append(parents, r.Header.Get("Traceparent"))
	}))
	defer server.Close()
	api := &http.Client{Transport: trace.Transport(http.DefaultTransport)}
	get := func(ctx context.Context) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		response, err := api.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		if err := response.Body.Close(); err != nil {
			t.Error(err)
		}
	}
	failure := errors.New("no")
	reconciler := trace.Reconciler("tenant", reconcile.Func(func(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
		get(ctx)
		return reconcile.Result{}, failure
	}))
	request := reconcile.Request{NamespacedName: types.NamespacedName{Name: "shop"}}
	if _, err := reconciler.Reconcile(t.Context(), request); !errors.Is(err, failure) {
		t.Errorf("the reconcile returned %v", err)
	}
	get(t.Context()) // as an informer does
	if err := stop(t.Context()); err != nil {
		t.Fatal(err)
	}

	reconciles, requests := c.listSpans(t, "reconcile tenant"), c.listSpans(t, "HTTP GET")
	if len(reconciles) != 1 || len(requests) != 1 {
		t.Fatalf("spans of %d reconciles and %d requests, not one of each", len(reconciles), len(requests))
	}
	if s := reconciles[0].Status; s.GetCode() != tracev1.Status_STATUS_CODE_ERROR {
		t.Errorf("the status of a failed reconcile's span is %s", s)
	}
	if !slices.Equal(requests[0].ParentSpanId, reconciles[0].SpanId) {
		t.Error("the request is not below its reconcile")
	}
	if len(parents) != 2 || parents[0] == "" || parents[1] != "" {
		t.Errorf("the API server received the traces %q", parents)
	}
}

// TestNoTraces expects an operator without a collector to work without tracing.
func TestNoTraces(t *testing.T) {
	stop, err := trace.Start(t.Context(), trace.Options{}, "v0.1.0")
	if err != nil {
		t.Fatal(err)
	}
	if err := stop(t.Context()); err != nil {
		t.Error(err)
	}
}
