package platform

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/apply"
)

// tell says what was put back. That a wall's policies were changed concerns every
// tenant, so it is a warning.
func (c *Controller) tell(platform *v1alpha1.Platform, changes []apply.Change) {
	for _, change := range changes {
		if !change.Wrote() {
			continue
		}
		by := ""
		if len(change.Undid) > 0 {
			by = ", changed with " + strings.Join(change.Undid, ", ")
		}
		c.recorder.Eventf(platform, nil, corev1.EventTypeWarning, "PutBack", "Apply", "put back %s%s", change.Ref, by)
	}
}
