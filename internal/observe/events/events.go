// Package events reads the author and the time of events. Both of Kubernetes' APIs for
// events have their own fields for these. It does no I/O.
package events

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// IsWrittenBy reports whether one of these components wrote an event. It compares whole names, as
// the admission rule event-source does: a tenant may write an event as karpenter-x, but
// not as karpenter.
func IsWrittenBy(e *corev1.Event, components ...string) bool {
	return slices.Contains(components, e.Source.Component) || slices.Contains(components, e.ReportingController)
}

// LastObserved returns the time when an event was last observed.
func LastObserved(e *corev1.Event) time.Time {
	newest := e.CreationTimestamp.Time
	for _, t := range []time.Time{e.FirstTimestamp.Time, e.EventTime.Time, e.LastTimestamp.Time} {
		if t.After(newest) {
			newest = t
		}
	}
	if e.Series != nil && e.Series.LastObservedTime.After(newest) {
		newest = e.Series.LastObservedTime.Time
	}
	return newest
}
