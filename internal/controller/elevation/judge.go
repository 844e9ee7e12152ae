package elevation

import (
	"time"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/estate"
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
