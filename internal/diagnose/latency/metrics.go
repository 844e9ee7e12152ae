package latency

import (
	"io"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"
)

// metricName is the name of the histogram that WriteMetrics writes.
const metricName = "croft_node_phase_seconds"

// WriteMetrics writes a histogram of each phase in the Prometheus text format. It covers the
// existing nodes, so the counts fall when nodes are deleted.
func WriteMetrics(w io.Writer, all []Timeline) error {
	histogram := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    metricName,
		Help:    "Duration in seconds of each phase of existing nodes.",
		Buckets: []float64{1, 2, 5, 10, 15, 20, 30, 45, 60, 90, 120, 180, 300, 600},
	}, []string{"phase", "pool", "instance_type", "zone", "image"})
	for i := range all {
		t := &all[i]
		for phase, seconds := range t.Phases {
			observer, err := histogram.GetMetricWithLabelValues(string(phase), t.Pool, t.InstanceType, t.Zone, t.Image)
			if err != nil {
				return err
			}
			observer.Observe(seconds)
		}
	}
	registry := prometheus.NewPedanticRegistry()
	if err := registry.Register(histogram); err != nil {
		return err
	}
	families, err := registry.Gather()
	if err != nil {
		return err
	}
	encoder := expfmt.NewEncoder(w, expfmt.NewFormat(expfmt.TypeTextPlain))
	for _, family := range families {
		if err := encoder.Encode(family); err != nil {
			return err
		}
	}
	return nil
}
