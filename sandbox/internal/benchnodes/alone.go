package benchnodes

import (
	"context"
	"time"

	"croft.dev/croft/internal/network/attach"
)

// The ways to attach interfaces to a node, as the report names them. Script is the script of
// the AWS post.
const (
	Without = "without networks"
	Croft   = "croft"
	Script  = "the script in user data"
)

// Alone is the result of one node at a time, which no limit of EC2 affects.
type Alone struct {
	Nodes int   `json:"nodes"`
	Ways  []Way `json:"ways"`
}

// Way is the time that nodes take in one way.
type Way struct {
	Name string `json:"name"`
	// Launched are the seconds from the launch of each NodeClaim until the node is Ready
	// and takes pods that use its networks.
	Launched []float64 `json:"secondsFromLaunched"`
	// Later are the seconds by which each node is later than the same node without networks.
	Later []float64 `json:"secondsLater"`
	// Incomplete counts nodes that are Ready, but have an interface missing or not up.
	Incomplete int `json:"incomplete"`
}

// between is the pause between two nodes, in which the account deletes the first.
const between = 2 * time.Minute

// MeasureAlone measures n nodes in each way, one after the other. It writes the account's file
// to dir.
func MeasureAlone(ctx context.Context, dir string, n int) (Alone, error) {
	without, byCroft, byScript := Way{Name: Without}, Way{Name: Croft}, Way{Name: Script}
	w, err := newWorld(ctx, dir)
	if err != nil {
		return Alone{}, err
	}
	operator := newCroft(w)
	for range n {
		// One instance with croft. Its time to Ready is also the time without networks, since
		// croft does not delay Ready.
		claim, err := w.launchInstance()
		if err != nil {
			return Alone{}, err
		}
		i := w.FindInstance(claim.Instance)
		attached, err := operator.run(ctx, []attach.Claim{claim})
		if err != nil {
			return Alone{}, err
		}
		at := computeUsable(i.RegistersAt, i.ReadyAt, attached[claim.UID], untilAgent.drawDuration())
		without.addSample(i.Launched, i.ReadyAt, i.ReadyAt)
		byCroft.addSample(i.Launched, i.ReadyAt, at)
		if !w.isComplete(claim.Instance) {
			byCroft.Incomplete++
		}
		if err := w.endNode(claim); err != nil {
			return Alone{}, err
		}
		// One instance with the script. The kubelet starts only when the script has ended.
		if claim, err = w.launchInstance(); err != nil {
			return Alone{}, err
		}
		i = w.FindInstance(claim.Instance)
		time.Sleep(time.Until(i.RunsAt.Add(untilScript.drawDuration())))
		out := (&script{world: w, claim: claim}).run(ctx)
		byScript.addSample(i.Launched, i.ReadyAt, i.ReadyAt.Add(out.took))
		time.Sleep(time.Minute)
		if !out.up || !w.isComplete(claim.Instance) {
			byScript.Incomplete++
		}
		if err := w.endNode(claim); err != nil {
			return Alone{}, err
		}
	}
	return Alone{n, []Way{without, byCroft, byScript}}, nil
}

// endNode terminates a node's instance, and waits until its interfaces are deleted.
func (w *world) endNode(c attach.Claim) error {
	if err := w.Terminate(c.Instance); err != nil {
		return err
	}
	time.Sleep(between)
	return nil
}

func (y *Way) addSample(launched, ready, usable time.Time) {
	y.Launched = append(y.Launched, usable.Sub(launched).Seconds())
	y.Later = append(y.Later, usable.Sub(ready).Seconds())
}
