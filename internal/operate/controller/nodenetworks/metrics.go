package nodenetworks

import (
	"time"

	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"croft.dev/croft/internal/operate/metric"
)

var (
	networksSeconds = metric.NetworksSeconds.HistogramVec()
	waitingSince    = metric.NetworksWaiting.GaugeVec()
)

func init() { metrics.Registry.MustRegister(networksSeconds, waitingSince) }

// updateMetrics sets, for each pool, since when its oldest waiting node exists.
func updateMetrics(oldest map[string]time.Time) {
	waitingSince.Reset()
	for pool, since := range oldest {
		waitingSince.WithLabelValues(pool).Set(float64(since.Unix()))
	}
}
