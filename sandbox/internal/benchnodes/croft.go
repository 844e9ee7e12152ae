package benchnodes

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"k8s.io/utils/clock"

	"croft.dev/croft/internal/network/attach"
	"croft.dev/croft/internal/operate/controller/interfaces"
	operator "croft.dev/croft/internal/operate/controller/interfaces/account"
)

// again is the pause before the operator retries after its limiter deferred a call.
const again = time.Second

// croft is the part of the operator that manages interfaces.
type croft struct {
	world  *world
	keeper *interfaces.Keeper
}

func newCroft(w *world) *croft {
	a := operator.New(w.config, clock.RealClock{})
	return &croft{w, interfaces.NewKeeper(a, a, clock.RealClock{}, interfaces.Grace)}
}

// run makes passes, as the controller does, until all claims have all their interfaces and
// the plan is empty. It returns the time at which each claim had its interfaces, by UID.
func (c *croft) run(ctx context.Context, claims []attach.Claim) (map[string]time.Time, error) {
	attached := map[string]time.Time{}
	deadline := time.Now().Add(patience)
	for time.Now().Before(deadline) {
		r, err := c.keeper.Pass(ctx, c.world.buildDesired(claims))
		if errors.Is(err, operator.ErrDeferred) {
			time.Sleep(again)
			continue
		}
		if err != nil && operator.Code(err) != "RequestLimitExceeded" {
			return attached, err
		}
		if err != nil {
			time.Sleep(again)
			continue
		}
		for uid := range maps.Keys(r.Attached) {
			if attached[uid].IsZero() {
				attached[uid] = time.Now()
			}
		}
		if r.Plan.Empty() && len(r.Plan.Waiting) == 0 {
			return attached, nil
		}
		time.Sleep(r.Next)
	}
	return attached, fmt.Errorf("after %s %d of %d nodes have their interfaces", patience, len(attached), len(claims))
}

// computeUsable returns the time at which a node of a pool with waitForNetworks accepts pods: it is
// Ready and has no taint. First, the operator lists the interfaces on the Node. Then the agent,
// which starts some time after the node registered, sets up the links within milliseconds, and
// reports them. Then the operator removes the taint. Each step is a write.
func computeUsable(registered, ready, attached time.Time, agent time.Duration) time.Time {
	listed := findLatest(registered, attached).Add(write)
	reported := findLatest(registered.Add(agent), listed).Add(write)
	return findLatest(ready, reported.Add(write))
}

func findLatest(times ...time.Time) (last time.Time) {
	for _, t := range times {
		if t.After(last) {
			last = t
		}
	}
	return last
}
