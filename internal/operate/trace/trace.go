// Package trace sends traces of the operator to an OpenTelemetry collector: a span for each
// reconcile, and below it a span for each request to the API server. The API server
// continues the trace if its own tracing is enabled (TracingConfiguration, KEP-647).
// Disabled tracing has no cost.
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

// library is the instrumentation scope of the spans.
const library = "croft.dev/croft"

// Options configure the export of traces.
type Options struct {
	// Endpoint is a collector's address, HOST:PORT. The collector accepts OTLP by gRPC
	// without TLS, as for the API server's TracingConfiguration. If it is empty there are
	// no traces.
	Endpoint string
	// RatePerMillion is the number of traced reconciles per million.
	RatePerMillion int32
}

// Start makes the whole process send spans to a collector. If the collector cannot be
// reached, spans are lost, without other effects. The returned function sends the remaining
// spans. Without an endpoint it does nothing.
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

// Reconciler returns a reconciler that creates a span, named after the controller, for each
// call.
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

// Transport returns a transport that creates a span for each request that is part of
// another span. Informers' requests are not: they watch for hours, and belong to no
// reconcile. Pass it to rest.Config's Wrap.
func Transport(next http.RoundTripper) http.RoundTripper {
	return otelhttp.NewTransport(next, otelhttp.WithPropagators(tracing.Propagators()), otelhttp.WithFilter(func(r *http.Request) bool {
		return oteltrace.SpanContextFromContext(r.Context()).IsValid()
	}))
}
