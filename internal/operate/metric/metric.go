// Package metric declares the metrics of croft's processes as data: their names, labels and
// help texts. Processes register these metrics, docs/reference/metrics.md is generated from them, and
// alerts and dashboards may use no other ones.
package metric

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"
)

// Type is a metric's type.
type Type string

// The types that croft uses.
const (
	Counter   Type = "counter"
	Gauge     Type = "gauge"
	Histogram Type = "histogram"
)

// Process is the process that serves a metric.
type Process string

// The processes. The last one is not part of croft.
const (
	Operator  Process = "croft operator"
	Proxy     Process = "croft proxy"
	Ledger    Process = "croft ledger"
	Copier    Process = "croft copy-secrets"
	APIServer Process = "kube-apiserver"
)

// Label is a label of a metric.
type Label struct {
	Name string
	// Description explains the values, for people. It is "" if the name is self-explanatory.
	Description string
}

// Metric describes one metric.
type Metric struct {
	Name    string
	Type    Type
	Process Process
	Labels  []Label
	// Help is one sentence. The process serves it as the help text.
	Help string
	// Buckets are a histogram's upper bounds, in seconds.
	Buckets []float64
}

// LabelNames returns the names of the labels, in the order of their values.
func (m Metric) LabelNames() []string {
	var names []string
	for _, l := range m.Labels {
		names = append(names, l.Name)
	}
	return names
}

// Desc returns the metric's description for Prometheus' client library.
func (m Metric) Desc() *prometheus.Desc {
	return prometheus.NewDesc(m.Name, m.Help, m.LabelNames(), nil)
}

// CounterVec returns a new counter. Without labels it has one series, which exists from the
// first use on.
func (m Metric) CounterVec() *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: m.Name, Help: m.Help}, m.LabelNames())
}

// GaugeVec returns a new gauge.
func (m Metric) GaugeVec() *prometheus.GaugeVec {
	return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: m.Name, Help: m.Help}, m.LabelNames())
}

// StateGauge returns a gauge whose series are computed for each scrape: list calls add for each of them.
func (m Metric) StateGauge(list func(add func(value float64, labels ...string))) prometheus.Collector {
	return stateGauge{m.Desc(), list}
}

// HistogramVec returns a new histogram.
func (m Metric) HistogramVec() *prometheus.HistogramVec {
	opts := prometheus.HistogramOpts{Name: m.Name, Help: m.Help, Buckets: m.Buckets}
	return prometheus.NewHistogramVec(opts, m.LabelNames())
}

// Series returns the names of the metric's series. A histogram has three.
func (m Metric) Series() []string {
	if m.Type == Histogram {
		return []string{m.Name + "_bucket", m.Name + "_sum", m.Name + "_count"}
	}
	return []string{m.Name}
}

// All returns croft's metrics, and the other ones that alerts and dashboards use.
func All() []Metric { return slices.Concat(Own(), Others()) }

type stateGauge struct {
	description *prometheus.Desc
	list        func(add func(value float64, labels ...string))
}

// Describe implements prometheus.Collector.
func (g stateGauge) Describe(to chan<- *prometheus.Desc) { to <- g.description }

// Collect implements prometheus.Collector.
func (g stateGauge) Collect(to chan<- prometheus.Metric) {
	g.list(func(value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(g.description, prometheus.GaugeValue, value, labels...)
	})
}
