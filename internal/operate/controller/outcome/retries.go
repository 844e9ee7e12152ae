package outcome

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"croft.dev/croft/internal/operate/metric"
)

// retried counts reconciles that lost a race.
var retried = metric.Retries.CounterVec()

func init() { metrics.Registry.MustRegister(retried) }

const (
	// firstRetry and lastRetry bound the pause before an object is retried. Each pause is
	// twice as long as the one before.
	firstRetry = 50 * time.Millisecond
	lastRetry  = 30 * time.Second
	// tolerated is the number of consecutive conflicts that are normal: the next try
	// resolves them, so neither a condition nor an event reports them.
	tolerated = 4
)

// Retries counts the consecutive conflicts of each object, for one controller.
type Retries struct {
	controller string

	mu      sync.Mutex
	streaks map[string]int
}

// NewRetries returns the Retries of a controller.
func NewRetries(controller string) *Retries {
	return &Retries{controller: controller, streaks: map[string]int{}}
}

// IsRacing reports whether an error consists only of races that the next try is expected to
// resolve.
func (r *Retries) IsRacing(name string, err error) bool {
	leaves := Leaves(err)
	if len(leaves) == 0 || slices.ContainsFunc(leaves, func(leaf error) bool { return classifyRace(leaf) == "" }) {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.streaks[name] < tolerated
}

// recordRaces counts a reconcile that lost races, logs the first of consecutive ones, and returns
// the delay before the next try.
func (r *Retries) recordRaces(ctx context.Context, name string, races []error) time.Duration {
	seen := map[string]bool{}
	for _, race := range races {
		if reason := classifyRace(race); !seen[reason] {
			seen[reason] = true
			retried.WithLabelValues(r.controller, reason).Inc()
		}
	}
	r.mu.Lock()
	r.streaks[name]++
	streak := r.streaks[name]
	r.mu.Unlock()
	if streak == 1 {
		log.FromContext(ctx).Info("conflict with another writer, retrying", "reason", classifyRace(races[0]), "error", errors.Join(races...).Error())
	}
	pause := firstRetry
	for range streak - 1 {
		if pause *= 2; pause >= lastRetry {
			return lastRetry
		}
	}
	return pause
}

// resetStreak ends an object's series of races.
func (r *Retries) resetStreak(ctx context.Context, name string) {
	r.mu.Lock()
	streak := r.streaks[name]
	delete(r.streaks, name)
	r.mu.Unlock()
	if streak >= tolerated {
		log.FromContext(ctx).Info("conflicts with another writer ended", "tries", streak)
	}
}
