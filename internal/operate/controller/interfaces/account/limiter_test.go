package account

import (
	"errors"
	"testing"
	"time"

	"github.com/aws/smithy-go"
	clocktesting "k8s.io/utils/clock/testing"
)

var (
	errRefused = &smithy.GenericAPIError{Code: "RequestLimitExceeded"}
	errBroken  = errors.New("connection reset")
)

func newClock() *clocktesting.FakeClock {
	return clocktesting.NewFakeClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
}

// countAllowed returns how many consecutive calls are allowed.
func countAllowed(l *limiter, action string) (n int) {
	for n < 1000 && l.takeToken(action, false) {
		n++
	}
	return n
}

func TestLimiter(t *testing.T) {
	c := newClock()
	l := newLimiter(c)
	if got := countAllowed(l, "CreateNetworkInterface"); got != 50 {
		t.Errorf("%d changes at once", got)
	}
	if got := countAllowed(l, "DescribeNetworkInterfaces"); got != 100 {
		t.Errorf("%d looks at once", got)
	}
	if got := countAllowed(l, "AttachNetworkInterface"); got != 50 {
		t.Errorf("%d changes of another kind at once", got)
	}
	c.Step(2 * time.Second)
	if got := countAllowed(l, "CreateNetworkInterface"); got != 10 {
		t.Errorf("%d changes after two seconds", got)
	}
}

func TestLimiterSlowsDown(t *testing.T) {
	c := newClock()
	l := newLimiter(c)
	l.takeToken("CreateNetworkInterface", false)
	for range 20 { // concurrent calls are throttled together, which counts once
		l.recordResult("CreateNetworkInterface", errRefused)
	}
	if l.takeToken("CreateNetworkInterface", false) {
		t.Error("right after a call was refused, another is made")
	}
	if !l.takeToken("AttachNetworkInterface", false) {
		t.Error("another action is held up, too")
	}
	c.Step(firstPause + firstPause/2)
	if got := countAllowed(l, "CreateNetworkInterface"); got > 1 {
		t.Errorf("%d at once, of a bucket that was empty", got)
	}
	c.Step(4 * time.Second)
	if got := countAllowed(l, "CreateNetworkInterface"); got < 8 || got > 11 {
		t.Errorf("%d in four seconds, and half the pace are 10", got)
	}
	for range 200 {
		l.recordResult("CreateNetworkInterface", nil)
	}
	c.Step(4 * time.Second)
	if got := countAllowed(l, "CreateNetworkInterface"); got != 20 {
		t.Errorf("%d in four seconds, after many that went well", got)
	}
}

// TestLimiterReservesTokensForRetries fails if a call that was throttled before costs no more
// than others, or if other calls take its tokens.
func TestLimiterReservesTokensForRetries(t *testing.T) {
	c := newClock()
	l := newLimiter(c)
	countAllowed(l, "CreateNetworkInterface")
	again := func() bool { return l.takeToken("CreateNetworkInterface", true) }
	c.Step(time.Second) // five more
	if !again() || again() {
		t.Error("two calls that were refused before cost more than five tokens, and one does not")
	}
	for range 3 {
		c.Step(100 * time.Millisecond)
		if l.takeToken("CreateNetworkInterface", false) {
			t.Error("another call takes the tokens that are put by")
		}
	}
	if !again() {
		t.Error("the tokens are there, and the call is not allowed")
	}
}

// TestLimiterMinimumRate fails if the rate and the pauses are not bounded, however often
// calls are throttled, or if other errors count.
func TestLimiterMinimumRate(t *testing.T) {
	c := newClock()
	l := newLimiter(c)
	for range 50 {
		l.recordResult("CreateNetworkInterface", errRefused)
		c.Step(2 * lastPause)
	}
	if got := countAllowed(l, "CreateNetworkInterface"); got != 16 {
		t.Errorf("%d in 32 s, at the slowest pace", got)
	}
	l.recordResult("DescribeInstances", errBroken)
	if got := countAllowed(l, "DescribeInstances"); got != 100 {
		t.Errorf("%d at once after another error", got)
	}
}

func TestCode(t *testing.T) {
	for want, err := range map[string]error{"RequestLimitExceeded": errors.Join(errBroken, errRefused), "": errBroken} {
		if got := Code(err); got != want {
			t.Errorf("%v: %q", err, got)
		}
	}
}
