package benchnodes

import (
	"context"
	"time"

	"croft.dev/croft/internal/secondary/attach"
)

// The ways to a node, as the report names them. Script is that of the AWS post.
const (
	Without = "without networks"
	Croft   = "croft"
	Script  = "the script in user data"
)

// Alone is one node at a time, so that no limit counts.
type Alone struct {
	Nodes int   `json:"nodes"`
	Ways  []Way `json:"ways"`
}

// Way is how long nodes take in one way.
type Way struct {
	Name string `json:"name"`
	// Launched are the seconds from the launch of each NodeClaim until the node is Ready
	// and takes pods that use its networks.
	Launched []float64 `json:"secondsFromLaunched"`
	// Later is by how many seconds each node is later than the same node without networks.
	Later []float64 `json:"secondsLater"`
	// Incomplete counts nodes that are Ready, and lack an interface or one that is up.
	Incomplete int `json:"incomplete"`
}

// between is how long the account has between two nodes.
const between = 2 * time.Minute

// MeasureAlone measures n nodes in each way, one after the other. The account's file is
// kept in dir.
func MeasureAlone(ctx context.Context, dir string, n int) (Alone, error) {
	without, byCroft, byScript := Way{Name: Without}, Way{Name: Croft}, Way{Name: Script}
	w, err := newWorld(ctx, dir)
	if err != nil {
		return Alone{}, err
	}
	operator := newCroft(w)
	for range n {
		// One instance with croft: its own time to Ready is that without networks, too, since
		// nothing of croft is on its way.
		claim, err := w.launch()
		if err != nil {
			return Alone{}, err
		}
		i := w.Instance(claim.Instance)
		attached, err := operator.run(ctx, []attach.Claim{claim})
		if err != nil {
			return Alone{}, err
		}
		at := usable(i.RegistersAt, i.ReadyAt, attached[claim.UID], untilAgent.draw())
		without.add(i.Launched, i.ReadyAt, i.ReadyAt)
		byCroft.add(i.Launched, i.ReadyAt, at)
		if !w.complete(claim.Instance) {
			byCroft.Incomplete++
		}
		if err := w.end(claim); err != nil {
			return Alone{}, err
		}
		// And one with the script, which the kubelet waits for.
		if claim, err = w.launch(); err != nil {
			return Alone{}, err
		}
		i = w.Instance(claim.Instance)
		time.Sleep(time.Until(i.RunsAt.Add(untilScript.draw())))
		out := (&script{world: w, claim: claim}).run(ctx)
		byScript.add(i.Launched, i.ReadyAt, i.ReadyAt.Add(out.took))
		time.Sleep(time.Minute)
		if !out.up || !w.complete(claim.Instance) {
			byScript.Incomplete++
		}
		if err := w.end(claim); err != nil {
			return Alone{}, err
		}
	}
	return Alone{n, []Way{without, byCroft, byScript}}, nil
}

// end ends a node, and lets its interfaces go.
func (w *world) end(c attach.Claim) error {
	if err := w.Terminate(c.Instance); err != nil {
		return err
	}
	time.Sleep(between)
	return nil
}

func (y *Way) add(launched, ready, usable time.Time) {
	y.Launched = append(y.Launched, usable.Sub(launched).Seconds())
	y.Later = append(y.Later, usable.Sub(ready).Seconds())
}
