package proxy

import (
	"testing"

	"croft.dev/croft/internal/metric"
	"croft.dev/croft/internal/metric/metrictest"
)

// TestMetricsAreRegistered fails if the proxy serves other metrics than are declared.
func TestMetricsAreRegistered(t *testing.T) {
	metrictest.Registered(t, newMetrics().registry, metric.Proxy)
}
