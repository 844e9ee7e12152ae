package proxy

import (
	"testing"

	"croft.dev/croft/internal/operate/metric"
	"croft.dev/croft/internal/operate/metric/metrictest"
)

// TestMetricsAreRegistered fails if the proxy's metrics differ from the declared ones.
func TestMetricsAreRegistered(t *testing.T) {
	metrictest.CheckRegistered(t, newMetrics().registry, metric.Proxy)
}
