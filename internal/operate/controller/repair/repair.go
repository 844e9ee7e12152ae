// Package repair reports repaired drift: in one event, in a log line for each object, and
// in a metric.
package repair

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"croft.dev/croft/internal/operate/apply"
	"croft.dev/croft/internal/operate/controller/event"
	"croft.dev/croft/internal/operate/metric"
)

// repaired counts repaired objects.
var repaired = metric.Repairs.CounterVec()

func init() {
	metrics.Registry.MustRegister(repaired)
	// An increase is only visible if the series existed before.
	for _, kind := range slices.Concat(apply.PlatformKinds, apply.NativePlatformKinds, apply.GatekeeperPlatformKinds, apply.PoolKinds, apply.ReadinessKinds) {
		repaired.WithLabelValues("", kind.Kind)
	}
}

// reason is the reason of the event.
const reason = "Repaired"

// Find returns the repairs among the changes of a reconcile, if the same declaration had been
// in place before. Deletions of objects that are no longer desired are not repairs, and
// Namespaces that were created or adopted have their own events.
func Find(changes []apply.Change) []apply.Change {
	var all []apply.Change
	for _, c := range changes {
		switch {
		case c.Action == apply.Configured, c.Action == apply.Recreated, c.Action == apply.Created && c.Kind != "Namespace":
			all = append(all, c)
		}
	}
	return all
}

// Report reports the repairs for an object and a tenant. tenant is "" for cluster-wide
// objects.
func Report(ctx context.Context, r events.EventRecorder, regarding client.Object, eventType, tenant string, repairs []apply.Change) {
	if len(repairs) == 0 {
		return
	}
	for _, c := range repairs {
		repaired.WithLabelValues(tenant, c.Kind).Inc()
		log.FromContext(ctx).Info("restored an object", "tenant", tenant, "kind", c.Kind, "namespace", c.Namespace, "name", c.Name,
			"was", describeAction(c), "managers", strings.Join(c.RevertedManagers, ","))
	}
	event.Emit(r, regarding, eventType, reason, "Apply", formatNote(repairs))
}

// Forget deletes the metrics of a deleted tenant.
func Forget(tenant string) { repaired.DeletePartialMatch(prometheus.Labels{"tenant": tenant}) }

func describeAction(c apply.Change) string {
	if c.Action == apply.Created {
		return "deleted"
	}
	return "changed"
}

// formatNote lists repairs, as many as fit in an event.
func formatNote(repairs []apply.Change) string {
	if len(repairs) == 1 {
		c := repairs[0]
		return fmt.Sprintf("restored %s, which was %s%s", c.Ref, describeAction(c), formatManagers(c))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "restored %d objects: ", len(repairs))
	for i, c := range repairs {
		item := fmt.Sprintf("%s (%s%s)", c.Ref, describeAction(c), formatManagers(c))
		if i > 0 {
			item = ", " + item
		}
		more := fmt.Sprintf(" and %d more; the operator's log lists all of them", len(repairs)-i)
		if b.Len()+len(item)+len(more) > event.Longest {
			b.WriteString(more)
			break
		}
		b.WriteString(item)
	}
	return b.String()
}

// formatManagers formats the field managers that had changed an object. Nothing records who deleted
// an object.
func formatManagers(c apply.Change) string {
	if len(c.RevertedManagers) == 0 || c.Action == apply.Created {
		return ""
	}
	return " by " + strings.Join(c.RevertedManagers, ", ")
}
