package benchnodes

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"k8s.io/utils/clock"

	"croft.dev/croft/internal/controller/interfaces"
	operator "croft.dev/croft/internal/controller/interfaces/account"
	"croft.dev/croft/internal/secondary/attach"
)

// again is how soon the operator looks again when the limiter held a call back.
const again = time.Second

// croft is the operator as far as interfaces go.
type croft struct {
	world  *world
	keeper *interfaces.Keeper
}

func newCroft(w *world) *croft {
	a := operator.New(w.config, clock.RealClock{})
	return &croft{w, interfaces.NewKeeper(a, a, clock.RealClock{}, interfaces.Grace)}
}

// run makes passes, as the controller does, until all claims have all their interfaces and
// there is nothing left to do. It returns when each claim had its interfaces, by UID.
func (c *croft) run(ctx context.Context, claims []attach.Claim) (map[string]time.Time, error) {
	attached := map[string]time.Time{}
	deadline := time.Now().Add(patience)
	for time.Now().Before(deadline) {
		r, err := c.keeper.Pass(ctx, c.world.wanted(claims))
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

// usable is when pods can come to a node of a pool with waitForNetworks: it is Ready, and the
// taint is gone. The operator lists the interfaces on the Node; the agent, which has been on
// the node since a while after it registered, sets up the links, which takes it
// milliseconds, and says so; the operator removes the taint. Each is a write.
func usable(registered, ready, attached time.Time, agent time.Duration) time.Time {
	listed := latest(registered, attached).Add(write)
	said := latest(registered.Add(agent), listed).Add(write)
	return latest(ready, said.Add(write))
}

func latest(times ...time.Time) (last time.Time) {
	for _, t := range times {
		if t.After(last) {
			last = t
		}
	}
	return last
}
