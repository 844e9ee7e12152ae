package proxy

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"k8s.io/apiserver/pkg/endpoints/request"

	"croft.dev/croft/internal/operate/metric"
)

// metrics are the proxy's metrics. They have no user label, because its cardinality would
// be too high; the audit log records users.
type metrics struct {
	registry        *prometheus.Registry
	requests        *prometheus.CounterVec
	duration        *prometheus.HistogramVec
	inFlight        prometheus.Gauge
	unauthenticated prometheus.Counter
}

func newMetrics() *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		requests: metric.ProxyRequests.CounterVec(),
		duration: metric.ProxyDuration.HistogramVec(),
		// These metrics have a series from the start, so that the first increase is
		// visible.
		inFlight:        prometheus.NewGauge(prometheus.GaugeOpts{Name: metric.ProxyOpen.Name, Help: metric.ProxyOpen.Help}),
		unauthenticated: prometheus.NewCounter(prometheus.CounterOpts{Name: metric.ProxyUnauthenticated.Name, Help: metric.ProxyUnauthenticated.Help}),
	}
	m.registry.MustRegister(
		m.requests, m.duration, m.inFlight, m.unauthenticated,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	return m
}

// instrument records the requests of a handler.
func (m *metrics) instrument(next http.Handler) http.Handler {
	counted := promhttp.InstrumentHandlerInFlight(m.inFlight, promhttp.InstrumentHandlerCounter(m.requests, next))
	timed := promhttp.InstrumentHandlerDuration(m.duration, counted)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if info, ok := request.RequestInfoFrom(r.Context()); ok && isLongRunning(r, info) {
			counted.ServeHTTP(w, r)
			return
		}
		timed.ServeHTTP(w, r)
	})
}

// newHandler serves /metrics.
func (m *metrics) newHandler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}
