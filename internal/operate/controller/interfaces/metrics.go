package interfaces

import (
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"croft.dev/croft/internal/network/attach"
	"croft.dev/croft/internal/operate/metric"
)

var (
	attachSeconds = metric.AttachSeconds.HistogramVec()
	kept          = metric.Interfaces.GaugeVec()
)

func init() { metrics.Registry.MustRegister(attachSeconds, kept) }

// updateMetrics sets the metrics of the interfaces.
func updateMetrics(all []attach.Interface, p *attach.Plan) {
	kept.Reset()
	for i := range all {
		n := &all[i]
		_, orphaned := p.Orphans[n.ID]
		state := "attached"
		switch {
		case orphaned:
			state = "orphaned"
		case n.Attachment == nil:
			state = "available"
		case !n.Attachment.Attached:
			state = "attaching"
		}
		kept.WithLabelValues(n.Tags[attach.NetworkTag], state).Inc()
	}
}
