package pool

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/operate/apply"
	"croft.dev/croft/internal/operate/controller/repair"
)

// recordApplied records that a pool's objects are in place, and reports repairs if they had been
// in place for the same declaration before.
func (c *Controller) recordApplied(ctx context.Context, pool *v1alpha1.Pool, revision uint64, changes []apply.Change, err error) {
	if c.appliedRevisions[pool.Name] == revision {
		repair.Report(ctx, c.recorder, pool, corev1.EventTypeNormal, "", repair.Find(changes))
	}
	if err == nil {
		c.appliedRevisions[pool.Name] = revision
	}
}
