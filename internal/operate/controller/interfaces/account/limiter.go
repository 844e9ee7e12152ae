package account

import (
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"croft.dev/croft/internal/operate/metric"
)

// counted counts the calls of EC2's API.
var counted = metric.EC2Calls.CounterVec()

func init() { metrics.Registry.MustRegister(counted) }

// limits are EC2's documented limits of an action for an account in a region: the number of
// calls at once, and the rate per second. Other clients use a part of them, so the limiter
// learns the available rate from throttled calls.
type limits struct {
	burst  int
	second rate.Limit
}

var (
	reading  = limits{100, 20}
	changing = limits{50, 5}
)

const (
	// slowest is the lowest rate per second to which throttling reduces an action.
	slowest rate.Limit = 0.5
	// recovery is the fraction of the documented rate by which each call that is not
	// throttled raises the rate. A larger one would soon be throttled again if other
	// clients use the rest.
	recovery = 0.005
	// firstPause and lastPause bound the pause of an action after one of its calls was
	// throttled.
	firstPause = 500 * time.Millisecond
	lastPause  = 16 * time.Second
	// dearer is the number of tokens for a call that was throttled before.
	dearer = 3
)

// limiter keeps the calls of each action below EC2's limits.
type limiter struct {
	clock clock.PassiveClock

	mu      sync.Mutex
	actions map[string]*bucket
}

type bucket struct {
	limits
	tokens *rate.Limiter
	// until is when the next call may be made after one was throttled. refused counts the
	// consecutive throttled calls.
	until   time.Time
	refused int
	// saved is when the reserved tokens for a call that was throttled before become
	// available. It is zero if no such call waits.
	saved time.Time
}

func newLimiter(clock clock.PassiveClock) *limiter {
	return &limiter{clock: clock, actions: map[string]*bucket{}}
}

func (l *limiter) getBucket(action string) *bucket {
	b := l.actions[action]
	if b == nil {
		b = &bucket{limits: changing}
		if strings.HasPrefix(action, "Describe") {
			b.limits = reading
		}
		b.tokens = rate.NewLimiter(b.second, b.burst)
		l.actions[action] = b
	}
	return b
}

// takeToken takes a token for a call, and reports whether one was available. A call that was
// throttled before costs more tokens, so that it is not throttled again: other calls probe
// EC2's limit. Its tokens are reserved, because other calls would take each token as soon
// as it is available.
func (l *limiter) takeToken(action string, again bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	b, now := l.getBucket(action), l.clock.Now()
	switch {
	case now.Before(b.until):
		return false
	case !again:
		return b.tokens.AllowN(now, 1)
	case b.saved.IsZero():
		b.saved = now.Add(b.tokens.ReserveN(now, dearer).DelayFrom(now))
	}
	if now.Before(b.saved) {
		return false
	}
	b.saved = time.Time{}
	return true
}

// recordResult learns from the result of a call. Calls that are throttled together count once.
func (l *limiter) recordResult(action string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	b, now := l.getBucket(action), l.clock.Now()
	switch {
	case !IsThrottled(err):
		b.refused = 0
		b.tokens.SetLimitAt(now, min(b.second, b.tokens.Limit()+b.second*recovery))
	case !now.Before(b.until):
		pause := min(firstPause<<b.refused, lastPause)
		b.refused = min(b.refused+1, 8)
		b.until = now.Add(pause/2 + rand.N(pause)) // random, so that replicas and other clients do not retry at once
		b.tokens.SetLimitAt(now, max(slowest, b.tokens.Limit()/2))
		if left := int(b.tokens.TokensAt(now)); left > 0 {
			b.tokens.AllowN(now, left) // EC2 has no tokens left, even if this limiter has counted some
		}
		b.saved = time.Time{} // the reserved tokens are lost, too
	}
}

// IsThrottled reports whether EC2 refused a call because of its rate limit.
func IsThrottled(err error) bool {
	return slices.Contains([]string{"RequestLimitExceeded", "Throttling", "ThrottlingException", "TooManyRequestsException", "RequestThrottled"}, Code(err))
}
