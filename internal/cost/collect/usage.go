package collect

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"croft.dev/croft/internal/cost/podusage"
)

// measureInterval is the interval at which the usage of pods is read.
const measureInterval = time.Minute

// measureRepeatedly reads the usage of pods until the context ends. It does not delay the journal while metrics-server does
// not answer.
func (c *Collector) measureRepeatedly(ctx context.Context) {
	ticker := c.Clock.NewTicker(measureInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
			c.measure(ctx)
		}
	}
}

// measure records the present usage of pods. If it cannot be read, the usage of this time stays unknown.
func (c *Collector) measure(ctx context.Context) {
	pods, err := c.ReadUsage(ctx)
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		c.Log.WarnContext(ctx, "the usage of pods cannot be read: it is unknown for this time", "error", err)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tracker.measure(pods, c.Clock.Now())
}

// measure records the usage of the pods that exist. A pod with the name of an earlier one has a UID of its own.
func (t *tracker) measure(pods []podusage.Pod, now time.Time) {
	for i := range pods {
		p := &pods[i]
		if uid, exists := t.pods[types.NamespacedName{Namespace: p.Namespace, Name: p.Name}]; exists {
			t.timeline.Measure(string(uid), p.CPU, p.Memory, now.Unix())
		}
	}
}
