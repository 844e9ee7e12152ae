package service

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"croft.dev/croft/internal/cost/ledger"
	"croft.dev/croft/internal/cost/money"
	"croft.dev/croft/internal/cost/recent"
	"croft.dev/croft/internal/cost/server"
	"croft.dev/croft/internal/cost/store"
	"croft.dev/croft/internal/operate/metric"
	"croft.dev/croft/internal/operate/metric/metrictest"
)

var hour = ledger.Span{From: time.Unix(1_795_000_000, 0), Until: time.Unix(1_795_003_600, 0)}

// newState returns the state of a collector: a hundredth of a cent for shop's requests, and a cost of its neighbour.
func newState(neighbour money.Amount) func() (time.Time, store.Record, error) {
	row := func(kind ledger.Kind, tenant string, cost money.Amount) ledger.Row {
		return ledger.Row{Key: ledger.Key{Kind: kind, Tenant: tenant, Resource: ledger.NodeResource}, Cost: cost}
	}
	next := store.Record{Currency: "EUR", Rows: []ledger.Row{
		row(ledger.Tenant, "shop", 100), row(ledger.Tenant, "bank", neighbour), row(ledger.Platform, "", 2*money.Unit),
		row(ledger.Idle, "", 500_000),
	}}
	return func() (time.Time, store.Record, error) { return hour.Until, next, nil }
}

// scrapeSeries returns croft's series in a handler's answer, without the buckets and sums of histograms.
func scrapeSeries(t *testing.T, h http.Handler) []string {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if w.Code != http.StatusOK {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	var series []string
	for line := range strings.Lines(w.Body.String()) {
		if strings.HasPrefix(line, "croft_") && !strings.Contains(line, "_bucket{") && !strings.Contains(line, "_sum{") {
			series = append(series, strings.TrimSuffix(line, "\n"))
		}
	}
	return series
}

// TestMetricsAreRegistered fails if the ledger's metrics differ from the declared ones.
func TestMetricsAreRegistered(t *testing.T) {
	m := newMetrics()
	m.addState(newState(0))
	all := prometheus.NewRegistry()
	all.MustRegister(m.open, m.costs)
	metrictest.CheckRegistered(t, all, metric.Ledger)
}

// TestState compares the gauges with a collector's state: the kinds add up to the cost of everything. A process that
// does not lead has no such series.
func TestState(t *testing.T) {
	m := newMetrics()
	m.addState(newState(1_234_567))
	series := scrapeSeries(t, m.newHandler())
	for _, want := range []string{
		"croft_ledger_last_hour_timestamp_seconds 1.7950036e+09",
		`croft_ledger_cost_per_hour{currency="EUR",kind="tenant"} 1.234667`,
		`croft_ledger_cost_per_hour{currency="EUR",kind="platform"} 2`,
		`croft_ledger_cost_per_hour{currency="EUR",kind="idle"} 0.5`,
		`croft_ledger_cost_per_hour{currency="EUR",kind="unallocated"} 0`,
	} {
		if !slices.Contains(series, want) {
			t.Errorf("no %s in %q", want, series)
		}
	}
	m = newMetrics()
	m.addState(func() (time.Time, store.Record, error) { return time.Time{}, store.Record{}, errors.New("starting") })
	for _, line := range scrapeSeries(t, m.newHandler()) {
		if strings.Contains(line, metric.LedgerStored.Name) || strings.Contains(line, metric.LedgerCost.Name) {
			t.Errorf("a process that does not lead has %s", line)
		}
	}
}

// TestOpenMetricsHideTenants changes the cost of a neighbour. The metrics without authentication stay the same, and
// have no tenant; the others change.
func TestOpenMetricsHideTenants(t *testing.T) {
	var open, all [2]string
	for i, neighbour := range []money.Amount{1, 777_777_777} {
		m := newMetrics()
		m.addState(newState(neighbour))
		_, next, _ := newState(neighbour)()
		m.countHour(&next)
		open[i], all[i] = strings.Join(scrapeSeries(t, m.newOpenHandler()), "\n"), strings.Join(scrapeSeries(t, m.newHandler()), "\n")
	}
	for _, text := range []string{metric.LedgerCost.Name, "tenant", "shop", "bank", "EUR"} {
		if strings.Contains(open[0], text) {
			t.Errorf("the metrics without authentication have %q: %s", text, open[0])
		}
	}
	if open[0] != open[1] {
		t.Errorf("the metrics without authentication depend on a neighbour:\n%s\n%s", open[0], open[1])
	}
	if all[0] == all[1] {
		t.Errorf("the cost of all tenants does not depend on one of them: %s", all[0])
	}
}

// TestCountHour expects each reason of an hour once.
func TestCountHour(t *testing.T) {
	for name, c := range map[string]struct {
		record store.Record
		want   []string
	}{
		"exact":                  {store.Record{Rows: []ledger.Row{{Cost: 1, Idle: 1}}}, nil},
		"an estimated price":     {store.Record{Rows: []ledger.Row{{Cost: 1, EstimatedCost: 1}, {Cost: 1, EstimatedCost: 1}}}, []string{reasonEstimate}},
		"an estimated idle cost": {store.Record{Rows: []ledger.Row{{Cost: 1, EstimatedIdle: 1}}}, []string{reasonEstimate}},
		"no price":               {store.Record{Rows: []ledger.Row{{Unpriced: 60}}}, []string{reasonNoPrice}},
		"a gap, and no price": {store.Record{Gaps: []ledger.Span{hour}, Rows: []ledger.Row{{Unpriced: 60}}},
			[]string{reasonGap, reasonNoPrice}},
	} {
		m := newMetrics()
		m.countHour(&c.record)
		series := scrapeSeries(t, m.newOpenHandler())
		for _, reason := range []string{reasonGap, reasonEstimate, reasonNoPrice} {
			want := `croft_ledger_hours_estimated_total{reason="` + reason + `"} 0`
			if slices.Contains(c.want, reason) {
				want = strings.TrimSuffix(want, "0") + "1"
			}
			if !slices.Contains(series, want) {
				t.Errorf("%s: no %s in %q", name, want, series)
			}
		}
	}
}

// TestInstrument counts requests by resource and status. Paths that users make up share one series.
func TestInstrument(t *testing.T) {
	m := newMetrics()
	h := m.instrument(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Has("bad") {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	for _, target := range []string{server.Path, server.Path + "?namespace=shop", server.Path + "?bad", server.ChargesPath, "/v1/costs/shop", "/", "/x?bad"} {
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, target, nil))
	}
	m.countStoreError(operationWrite)
	m.countCopy(recent.Written)
	series := scrapeSeries(t, m.newOpenHandler())
	want := []string{
		`croft_ledger_hour_copies_total{result="failed"} 0`, `croft_ledger_hour_copies_total{result="too_large"} 0`,
		`croft_ledger_hour_copies_total{result="written"} 1`,
		`croft_ledger_hours_estimated_total{reason="estimate"} 0`, `croft_ledger_hours_estimated_total{reason="gap"} 0`,
		`croft_ledger_hours_estimated_total{reason="no_price"} 0`,
		`croft_ledger_queries_total{code="200",resource="charges"} 1`, `croft_ledger_queries_total{code="200",resource="costs"} 2`,
		`croft_ledger_queries_total{code="200",resource="other"} 2`, `croft_ledger_queries_total{code="503",resource="costs"} 1`,
		`croft_ledger_queries_total{code="503",resource="other"} 1`,
		`croft_ledger_query_duration_seconds_count{resource="charges"} 1`, `croft_ledger_query_duration_seconds_count{resource="costs"} 3`,
		`croft_ledger_query_duration_seconds_count{resource="other"} 3`,
		`croft_ledger_store_errors_total{operation="read"} 0`, `croft_ledger_store_errors_total{operation="write"} 1`,
	}
	slices.Sort(series)
	if !slices.Equal(series, want) {
		t.Errorf("got  %q\nwant %q", series, want)
	}
}
