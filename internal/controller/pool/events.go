package pool

import (
	corev1 "k8s.io/api/core/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/apply"
)

// remember notes that a pool stands, and says what was put back if it had stood
// for the same declaration before.
func (c *Controller) remember(pool *v1alpha1.Pool, revision uint64, changes []apply.Change, err error) {
	for _, change := range changes {
		if c.stood[pool.Name] == revision && change.Wrote() {
			c.recorder.Eventf(pool, nil, corev1.EventTypeNormal, "PutBack", "Apply", "put back %s", change.Ref)
		}
	}
	if err != nil {
		delete(c.stood, pool.Name)
		return
	}
	c.stood[pool.Name] = revision
}
