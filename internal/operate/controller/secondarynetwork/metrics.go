package secondarynetwork

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"croft.dev/croft/internal/declare/secondary"
	"croft.dev/croft/internal/operate/metric"
)

var (
	used  = metric.NetworkUsed.GaugeVec()
	total = metric.NetworkAddresses.GaugeVec()
)

func init() { metrics.Registry.MustRegister(used, total) }

// updateMetrics sets the metrics of a network, and deletes the metrics of its removed zones.
func updateMetrics(network string, uses []secondary.Use) {
	deleteMetrics(network)
	for _, u := range uses {
		used.WithLabelValues(network, u.Zone).Set(float64(u.Used))
		total.WithLabelValues(network, u.Zone).Set(float64(u.Total))
	}
}

// deleteMetrics deletes the metrics of a network.
func deleteMetrics(network string) {
	of := prometheus.Labels{"network": network}
	used.DeletePartialMatch(of)
	total.DeletePartialMatch(of)
}
