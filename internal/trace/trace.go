// Package trace sends traces of what the operator does to an OpenTelemetry collector: a span
// for each reconcile, and below it one for each request to the API server, which continues
// the trace if its own tracing is on (TracingConfiguration, KEP-647). Off, it costs nothing.
package trace

import (
	"context"
	"fmt"
	"net/http"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/resource"
	oteltrace "go.opentelemetry.io/otel/trace"
	"k8s.io/component-base/tracing"
	tracingv1 "k8s.io/component-base/tracing/api/v1"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// library is the name that spans carry of what made them.
const library = "croft.dev/croft"

// Options say where traces go.
type Options struct {
	// Endpoint is a collector's address, HOST:PORT, which takes OTLP by gRPC without TLS, as
	// that of the API server's TracingConfiguration. Without one there are no traces.
	Endpoint string
	// RatePerMillion is how many of a million reconciles are traced.
	RatePerMillion int32
}

// Start makes spans go to a collector, from now on and for the whole process. A collector
// that cannot be reached costs spans and nothing else. The returned function sends what is
// left; without an endpoint it does nothing.
func Start(ctx context.Context, o Options, version string) (stop func(context.Context) error, err error) {
	if o.Endpoint == "" {
		return func(context.Context) error { return nil }, nil
	}
	config := &tracingv1.TracingConfiguration{Endpoint: &o.Endpoint, SamplingRatePerMillion: &o.RatePerMillion}
	who := resource.WithAttributes(attribute.String("service.name", "croft-operator"), attribute.String("service.version", version))
	provider, err := tracing.NewProvider(ctx, config, nil, []resource.Option{who})
	if err != nil {
		return nil, fmt.Errorf("traces to %s: %w", o.Endpoint, err)
	}
	otel.SetTracerProvider(provider)
	return provider.Shutdown, nil
}

// Reconciler returns a reconciler whose calls are spans named after a controller.
func Reconciler(controller string, r reconcile.Reconciler) reconcile.Reconciler {
	return reconcile.Func(func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
		ctx, span := otel.Tracer(library).Start(ctx, "reconcile "+controller, oteltrace.WithAttributes(
			attribute.String("k8s.namespace.name", req.Namespace), attribute.String("croft.object", req.Name)))
		defer span.End()
		result, err := r.Reconcile(ctx, req)
		if err != nil {
			span.RecordError(err)
			span.SetStatus(codes.Error, "the reconcile is repeated")
		}
		return result, err
	})
}

// Transport returns a transport whose requests are spans, if they are part of one: informers
// watch for hours, and belong to no reconcile. It is for rest.Config's Wrap.
func Transport(next http.RoundTripper) http.RoundTripper {
	return otelhttp.NewTransport(next, otelhttp.WithPropagators(tracing.Propagators()), otelhttp.WithFilter(func(r *http.Request) bool {
		return oteltrace.SpanContextFromContext(r.Context()).IsValid()
	}))
}
