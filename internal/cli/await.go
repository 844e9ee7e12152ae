package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/internal/declare/manifest"
	"croft.dev/croft/internal/operate/heartbeat"
)

// silence is the time without progress after which apply reports the pending objects and
// the state of the operator.
const silence = 10 * time.Second

// pollInterval is the time between two reads of the declared objects. If a read takes long, as
// with thousands of tenants, the pause is a multiple of it: the operator needs the time of the
// machine and of the API server.
const (
	pollInterval = 300 * time.Millisecond
	pauseFactor  = 4
)

// mostPending is the maximum number of pending objects named at the end.
const mostPending = 10

// warnIfNoOperator warns at once if no operator runs.
func (a *app) warnIfNoOperator(ctx context.Context, c client.Reader) error {
	beat, err := heartbeat.Read(ctx, c)
	if now := time.Now(); err == nil && !beat.IsBelievable(now) {
		printSafely(a.err, "%s: the objects have no effect until an operator runs\n", beat.Describe(now))
	}
	return explainUnreachable(err)
}

// awaitReady waits until every object is Ready in its current generation. known are the declared objects of the cluster,
// or nil if they changed since they were read.
func (a *app) awaitReady(ctx context.Context, c client.Client, objects []client.Object, known *manifest.Declaration, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	p := newProgress(a.err)
	defer p.finish()
	var (
		last     string
		patience patience
	)
	changed := time.Now()
	operator, err := newListener(ctx, c)
	if err != nil {
		return toFailure(err)
	}
	var watched client.Reader = c
	for first := true; ; first = false {
		began := time.Now()
		live, err := known, error(nil)
		if live == nil {
			live, err = readProgress(ctx, watched, c, objects, changed)
		}
		known = nil
		pause := max(pollInterval, pauseFactor*time.Since(began))
		if err != nil && ctx.Err() == nil {
			return toFailure(err)
		}
		if err == nil {
			seen := evaluateReadiness(live, objects)
			seen.stuck = confirmOwnership(ctx, c, live, seen.stuck)
			p.update("%d/%d ready%s", seen.ready, len(objects), seen.describePending())
			if now := strings.Join(seen.pending, "\n"); now != last {
				operator.changed = operator.changed || last != ""
				last, changed = now, time.Now()
			}
			silent := operator.checkOperator(ctx, p)
			gaveUp := patience.checkStuck(seen, time.Now())
			switch {
			case seen.ready == len(objects) && operator.isOperatorRunning(ctx):
				return nil
			case silent != nil:
				return toFailure(silent)
			case gaveUp != nil:
				return toFailure(gaveUp)
			case time.Since(changed) > silence:
				p.printOnce("no progress for " + silence.String() + "; operator: " + operator.last.Describe(time.Now()))
			}
		}
		select {
		case <-ctx.Done():
			if !operator.last.IsBelievable(time.Now()) && !operator.changed && errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return toFailure(operator.errNoOperator())
			}
			return toFailure(explainTimeout(ctx, live, objects, timeout))
		case <-time.After(pause):
			if first {
				watched = a.watchDeclared(ctx, c)
			}
		}
	}
}

// readProgress reads the declared objects from watches. It reads from the API server if they are all Ready, since a
// watch may begin with a state before the last write, or have not changed for long, since a watch reports no errors.
func readProgress(ctx context.Context, watched, live client.Reader, objects []client.Object, changed time.Time) (*manifest.Declaration, error) {
	found, err := readDeclaration(ctx, watched)
	if err == nil && watched != live && (evaluateReadiness(found, objects).ready == len(objects) || time.Since(changed) > silence) {
		return readDeclaration(ctx, live)
	}
	return found, err
}

func explainTimeout(ctx context.Context, live *manifest.Declaration, objects []client.Object, timeout time.Duration) error {
	if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return newInterruption(": the written objects stay; run the same command again to continue to wait")
	}
	lines := []string{fmt.Sprintf("not all objects were ready after %s", timeout)}
	if live != nil {
		pending := evaluateReadiness(live, objects).pending
		for _, why := range pending[:min(len(pending), mostPending)] {
			lines = append(lines, "  "+why)
		}
		if more := len(pending) - mostPending; more > 0 {
			lines = append(lines, fmt.Sprintf("  and %d more", more))
		}
	}
	return errors.New(strings.Join(append(lines, "the operator continues; `croft status` shows the progress"), "\n"))
}
