package elevation

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/operate/controller/status"
)

// patience is how long a request waits for its approval.
const patience = 24 * time.Hour

// retention is how long the record of a request is kept after its end.
const retention = 30 * 24 * time.Hour

// computeExpiry returns when a request is deleted, in any phase. A request stays pending if its
// tenant is not valid.
func computeExpiry(e *v1alpha1.Elevation) time.Time {
	if e.Status.Until != nil {
		return e.Status.Until.Add(retention)
	}
	return e.CreationTimestamp.Add(retention)
}

// decideRequest decides on a request that is not yet granted. The API server decides who may
// approve it; see identity.ElevationsPolicy.
func decideRequest(e *v1alpha1.Elevation, p *estate.Platform, now time.Time) (v1alpha1.ElevationPhase, string) {
	switch {
	case p == nil || p.Elevation == nil:
		return v1alpha1.ElevationRefused, "elevations are disabled: platform.elevation is not set"
	case e.Spec.Duration.Duration > p.Elevation.MaxDuration.Duration:
		return v1alpha1.ElevationRefused, "spec.duration is longer than the platform's elevation.maxDuration, " + p.Elevation.MaxDuration.Duration.String()
	case e.Spec.ApprovedBy == e.Spec.RequestedBy:
		return v1alpha1.ElevationRefused, "approved by its own requester"
	case now.After(e.CreationTimestamp.Add(patience)):
		return v1alpha1.ElevationRefused, "no approver approved it within a day"
	case len(p.Elevation.Approvers) > 0 && e.Spec.ApprovedBy == "":
		return v1alpha1.ElevationPending, "waits for an approver: croft elevate approve " + e.Name + " -n " + e.Namespace
	}
	return v1alpha1.ElevationActive, ""
}

// notReady are the reasons of Ready in the phases in which an elevation gives no access.
var notReady = map[v1alpha1.ElevationPhase]string{
	v1alpha1.ElevationPending: v1alpha1.ReasonAwaitingApproval,
	v1alpha1.ElevationEnded:   v1alpha1.ReasonEnded,
	v1alpha1.ElevationRefused: v1alpha1.ReasonRefused,
}

// setConditions sets the conditions that follow from the phase.
func setConditions(s *v1alpha1.ElevationStatus, generation int64) {
	if s.Phase == v1alpha1.ElevationActive {
		s.ObservedGeneration = generation
		status.Set(&s.Status, generation, v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonGranted, s.Message)
	} else {
		status.SetNotReady(&s.Status, generation, notReady[s.Phase], s.Message)
	}
	status.SetProgress(&s.Status, generation, false)
}
