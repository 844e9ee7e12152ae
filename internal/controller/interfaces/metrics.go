package interfaces

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"croft.dev/croft/internal/secondary/attach"
)

var (
	// attachSeconds is how long nodes waited for their interfaces.
	attachSeconds = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "croft_interfaces_attach_seconds",
		Help:    "Time from the launch of an instance until all its secondary network interfaces were attached, by pool.",
		Buckets: []float64{1, 2, 5, 8, 10, 12, 15, 20, 30, 60, 120, 300},
	}, []string{"pool"})
	// kept are the interfaces that croft made.
	kept = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "croft_interfaces",
		Help: "Network interfaces that croft made for secondary networks, by network and state: attached, attaching, available, or orphaned if no NodeClaim has it.",
	}, []string{"network", "state"})
)

func init() { metrics.Registry.MustRegister(attachSeconds, kept) }

// count sets the metric of interfaces.
func count(all []attach.Interface, p *attach.Plan) {
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
		case !n.Attachment.Done:
			state = "attaching"
		}
		kept.WithLabelValues(n.Tags[attach.NetworkTag], state).Inc()
	}
}
