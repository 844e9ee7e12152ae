package quota

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"croft.dev/croft/internal/declare/quotaplan"
	"croft.dev/croft/internal/operate/metric"
)

// moved counts changes of shares.
var moved = metric.SharesMoved.CounterVec()

func init() { metrics.Registry.MustRegister(moved) }

// countMoved counts the namespaces whose share has changed. It excludes a namespace's first
// share, and namespaces that leave the tenant.
func (s *observation) countMoved() {
	counter := moved.WithLabelValues(s.tenant.Name)
	for _, space := range s.spaces {
		if next, ok := s.next[space.Namespace]; ok && space.Share != nil && !quotaplan.IsEqual(next, space.Share) {
			counter.Inc()
		}
	}
}

// forgetMoved deletes the metrics of a deleted tenant.
func forgetMoved(tenant string) { moved.DeletePartialMatch(prometheus.Labels{"tenant": tenant}) }
