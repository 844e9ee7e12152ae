package service

import (
	"cmp"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"croft.dev/croft/internal/access/tlsserver"
	"croft.dev/croft/internal/cost/ledger"
	"croft.dev/croft/internal/cost/money"
	"croft.dev/croft/internal/cost/recent"
	"croft.dev/croft/internal/cost/server"
	"croft.dev/croft/internal/cost/store"
	"croft.dev/croft/internal/declare/budget"
	"croft.dev/croft/internal/operate/metric"
)

// The values of labels. A label with a value that users choose would have no bound.
const (
	reasonGap, reasonEstimate, reasonNoPrice = "gap", "estimate", "no_price"
	operationRead, operationWrite            = "read", "write"
	otherResource                            = "other"
)

// resources are the values of the label resource, by path.
var resources = map[string]string{
	server.Path: "costs", server.ChargesPath: "charges", server.HistoryPath: "history", budget.Path: "budgets",
	server.MetricsPath: "metrics",
}

// scrapeDrain is the time for open scrapes after the signal to stop.
const scrapeDrain = time.Second

// metrics are the ledger's metrics.
type metrics struct {
	// open are the metrics that need no authentication. They have no amounts: in a shared pool, a tenant that knows
	// the cost of all tenants and its own knows the cost of its neighbour.
	open *prometheus.Registry
	// costs are the other metrics. Only server.MetricsPath serves them.
	costs       *prometheus.Registry
	estimated   *prometheus.CounterVec
	storeErrors *prometheus.CounterVec
	copies      *prometheus.CounterVec
	queries     *prometheus.CounterVec
	duration    *prometheus.HistogramVec
}

// newMetrics returns the metrics. They have a series from the start, so that the first increase is visible.
func newMetrics() *metrics {
	m := &metrics{
		open: prometheus.NewRegistry(), costs: prometheus.NewRegistry(),
		estimated: metric.LedgerEstimated.CounterVec(), storeErrors: metric.LedgerStoreErrors.CounterVec(),
		copies: metric.LedgerCopies.CounterVec(), queries: metric.LedgerQueries.CounterVec(), duration: metric.LedgerDuration.HistogramVec(),
	}
	m.open.MustRegister(m.estimated, m.storeErrors, m.copies, m.queries, m.duration,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	for _, reason := range []string{reasonGap, reasonEstimate, reasonNoPrice} {
		m.estimated.WithLabelValues(reason)
	}
	for _, operation := range []string{operationRead, operationWrite} {
		m.storeErrors.WithLabelValues(operation)
	}
	for _, result := range []recent.Result{recent.Written, recent.TooLarge, recent.Failed} {
		m.copies.WithLabelValues(string(result))
	}
	return m
}

// addState adds the metrics of a collector's state. While it does not lead, they have no series.
func (m *metrics) addState(getLatest func() (stored time.Time, next store.Record, err error)) {
	m.open.MustRegister(metric.LedgerStored.StateGauge(func(add func(float64, ...string)) {
		if stored, _, err := getLatest(); err == nil {
			add(float64(stored.Unix()))
		}
	}))
	m.costs.MustRegister(metric.LedgerCost.StateGauge(func(add func(float64, ...string)) {
		_, next, err := getLatest()
		if err != nil {
			return
		}
		sums := map[ledger.Kind]money.Amount{}
		for i := range next.Rows {
			sums[next.Rows[i].Kind] += next.Rows[i].Cost
		}
		for _, kind := range []ledger.Kind{ledger.Tenant, ledger.Platform, ledger.Idle, ledger.Unallocated} {
			add(float64(sums[kind])/float64(money.Unit), next.Currency, string(kind))
		}
	}))
}

// countHour counts a stored hour if it has a figure that is not exact.
func (m *metrics) countHour(r *store.Record) {
	reasons := map[string]bool{reasonGap: len(r.Gaps) > 0}
	for i := range r.Rows {
		row := &r.Rows[i]
		reasons[reasonEstimate] = reasons[reasonEstimate] || row.EstimatedCost > 0 || row.EstimatedIdle > 0
		reasons[reasonNoPrice] = reasons[reasonNoPrice] || row.Unpriced > 0
	}
	for reason, found := range reasons {
		if found {
			m.estimated.WithLabelValues(reason).Inc()
		}
	}
}

func (m *metrics) countCopy(result recent.Result) { m.copies.WithLabelValues(string(result)).Inc() }

func (m *metrics) countStoreError(operation string) { m.storeErrors.WithLabelValues(operation).Inc() }

// instrument counts and times the requests of a handler by resource.
func (m *metrics) instrument(next http.Handler) http.Handler {
	timed := map[string]http.Handler{}
	add := func(resource string) {
		labels := prometheus.Labels{"resource": resource}
		counted := promhttp.InstrumentHandlerCounter(m.queries.MustCurryWith(labels), next)
		timed[resource] = promhttp.InstrumentHandlerDuration(m.duration.MustCurryWith(labels), counted)
	}
	add(otherResource)
	for _, resource := range resources {
		add(resource)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		timed[cmp.Or(resources[r.URL.Path], otherResource)].ServeHTTP(w, r)
	})
}

// newOpenHandler serves the metrics without amounts.
func (m *metrics) newOpenHandler() http.Handler {
	return promhttp.HandlerFor(m.open, promhttp.HandlerOpts{})
}

// newHandler serves all metrics. The caller authorizes requests.
func (m *metrics) newHandler() http.Handler {
	return promhttp.HandlerFor(prometheus.Gatherers{m.open, m.costs}, promhttp.HandlerOpts{})
}

// newServer serves the metrics without amounts at an address, in each process.
func (m *metrics) newServer(address string) *manager.Server {
	mux := http.NewServeMux()
	mux.Handle("/metrics", m.newOpenHandler())
	return &manager.Server{Name: "metrics", ShutdownTimeout: ptr.To(scrapeDrain), Server: &http.Server{
		Addr: address, Handler: mux, ReadHeaderTimeout: tlsserver.HeaderTimeout, IdleTimeout: tlsserver.IdleTimeout,
	}}
}
