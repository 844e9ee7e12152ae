package account

import (
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"croft.dev/croft/internal/metric"
)

// counted counts calls of EC2's API.
var counted = metric.EC2Calls.CounterVec()

func init() { metrics.Registry.MustRegister(counted) }

// limits are what EC2's documentation allows an account in a region of one action: so
// many calls at once, and so many a second. Others have a share of it, so what is
// allowed is learned from what is refused.
type limits struct {
	burst  int
	second rate.Limit
}

var (
	reading  = limits{100, 20}
	changing = limits{50, 5}
)

const (
	// slowest is the pace below which throttling does not push an action.
	slowest rate.Limit = 0.5
	// recovery is by which part of the documented pace one call that was not refused
	// raises the pace: more would soon be refused again where others use the rest.
	recovery = 0.005
	// firstPause and lastPause bound how long no call of an action is made after one was
	// refused.
	firstPause = 500 * time.Millisecond
	lastPause  = 16 * time.Second
	// dearer is how many tokens a call costs that was refused before.
	dearer = 3
)

// limiter keeps the calls of each action below what EC2 allows.
type limiter struct {
	now func() time.Time

	mu      sync.Mutex
	actions map[string]*bucket
}

type bucket struct {
	limits
	tokens *rate.Limiter
	// until is when the next call may be made after one was refused; refused counts those
	// in a row.
	until   time.Time
	refused int
	// saved is when the tokens for a call that was refused before are there; the zero time if
	// none waits.
	saved time.Time
}

func newLimiter(now func() time.Time) *limiter {
	return &limiter{now: now, actions: map[string]*bucket{}}
}

func (l *limiter) bucket(action string) *bucket {
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

// allow takes a token for a call, and says whether there was one. A call that was refused
// before costs more, so that it is not refused again: finding out how many calls EC2 allows
// is for others. Tokens are put by for it, or the others would take each as it comes.
func (l *limiter) allow(action string, again bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	b, now := l.bucket(action), l.now()
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

// done learns from what came of a call. Calls that are refused together count once.
func (l *limiter) done(action string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	b, now := l.bucket(action), l.now()
	switch {
	case !Throttled(err):
		b.refused = 0
		b.tokens.SetLimitAt(now, min(b.second, b.tokens.Limit()+b.second*recovery))
	case !now.Before(b.until):
		pause := min(firstPause<<b.refused, lastPause)
		b.refused = min(b.refused+1, 8)
		b.until = now.Add(pause/2 + rand.N(pause)) // so that replicas and others do not come back at once
		b.tokens.SetLimitAt(now, max(slowest, b.tokens.Limit()/2))
		if left := int(b.tokens.TokensAt(now)); left > 0 {
			b.tokens.AllowN(now, left) // EC2 has none left, whatever was counted here
		}
		b.saved = time.Time{} // nor are those that were put by
	}
}

// Throttled says whether EC2 refused a call for there being too many.
func Throttled(err error) bool {
	return slices.Contains([]string{"RequestLimitExceeded", "Throttling", "ThrottlingException", "TooManyRequestsException", "RequestThrottled"}, Code(err))
}
