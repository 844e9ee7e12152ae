package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/internal/heartbeat"
	"croft.dev/croft/internal/manifest"
)

// silence is the time without progress after which apply reports the pending objects and
// the state of the operator.
const silence = 10 * time.Second

// mostPending is the maximum number of pending objects named at the end.
const mostPending = 10

// warnIfNoOperator warns at once if no operator runs.
func (a *app) warnIfNoOperator(ctx context.Context, c client.Reader) error {
	beat, err := heartbeat.Read(ctx, c)
	if now := time.Now(); err == nil && !beat.Believable(now) {
		say(a.err, "%s: nothing becomes of what was written before one runs\n", beat.Say(now))
	}
	return unreachable(err)
}

// awaitReady waits until every object is Ready in its current generation.
func awaitReady(ctx context.Context, c client.Reader, p *progress, objects []client.Object, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	defer p.done()
	var (
		last     string
		patience patience
	)
	changed := time.Now()
	operator, err := listen(ctx, c)
	if err != nil {
		return failed(err)
	}
	for {
		live, err := declared(ctx, c)
		if err != nil && ctx.Err() == nil {
			return failed(err)
		}
		if err == nil {
			seen := readinessOf(live, objects)
			seen.stuck = confirmOwnership(ctx, c, live, seen.stuck)
			p.update("%d/%d ready%s", seen.ready, len(objects), seen.waitingFor())
			if now := strings.Join(seen.pending, "\n"); now != last {
				operator.acted = operator.acted || last != ""
				last, changed = now, time.Now()
			}
			silent := operator.silent(ctx, p)
			gaveUp := patience.exhausted(seen, time.Now())
			switch {
			case seen.ready == len(objects) && operator.hears(ctx):
				return nil
			case silent != nil:
				return failed(silent)
			case gaveUp != nil:
				return failed(gaveUp)
			case time.Since(changed) > silence:
				p.hint("nothing has happened for " + silence.String() + "; operator: " + operator.last.Say(time.Now()))
			}
		}
		select {
		case <-ctx.Done():
			if !operator.last.Believable(time.Now()) && !operator.acted && errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return failed(operator.errNoOperator())
			}
			return failed(stillWaiting(ctx, live, objects, timeout))
		case <-time.After(300 * time.Millisecond):
		}
	}
}

func stillWaiting(ctx context.Context, live *manifest.Declaration, objects []client.Object, timeout time.Duration) error {
	if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return interrupted(": what was written stays; run the same command again to go on waiting")
	}
	lines := []string{fmt.Sprintf("not everything was ready after %s", timeout)}
	if live != nil {
		pending := readinessOf(live, objects).pending
		for _, why := range pending[:min(len(pending), mostPending)] {
			lines = append(lines, "  "+why)
		}
		if more := len(pending) - mostPending; more > 0 {
			lines = append(lines, fmt.Sprintf("  and %d more", more))
		}
	}
	return errors.New(strings.Join(append(lines, "croft goes on trying; `croft status` shows how far it is"), "\n"))
}
