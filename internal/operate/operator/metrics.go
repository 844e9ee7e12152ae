package operator

import (
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"croft.dev/croft/internal/declare/version"
	"croft.dev/croft/internal/operate/metric"
)

// heartbeatAt has no series before the first heartbeat. A standby replica writes none.
var heartbeatAt = metric.Heartbeat.GaugeVec()

func init() {
	build := metric.BuildInfo.GaugeVec()
	build.WithLabelValues(version.String()).Set(1)
	metrics.Registry.MustRegister(heartbeatAt, build)
}
