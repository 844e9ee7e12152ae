package quota

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"croft.dev/croft/internal/metric"
	"croft.dev/croft/internal/quotaplan"
)

// moved counts changes of shares.
var moved = metric.SharesMoved.CounterVec()

func init() { metrics.Registry.MustRegister(moved) }

// countMoved counts the namespaces whose share is another than before. A namespace that is
// given its first share, or that leaves, is not counted.
func (s *observation) countMoved() {
	counter := moved.WithLabelValues(s.tenant.Name)
	for _, space := range s.spaces {
		if next, ok := s.next[space.Namespace]; ok && space.Share != nil && !quotaplan.Same(next, space.Share) {
			counter.Inc()
		}
	}
}

// forgetMoved ends the metrics of a tenant that is gone.
func forgetMoved(tenant string) { moved.DeletePartialMatch(prometheus.Labels{"tenant": tenant}) }
