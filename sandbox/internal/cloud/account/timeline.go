package account

import (
	"math/rand/v2"
	"time"
)

// The times that an instance takes, as node-latency-for-k8s measured them on two nodes of an
// EKS cluster, without the 21 and 26 seconds of the script in their user data: from pending, 9
// and 10 s to a running machine, 16 and 17 s to a registered node, 25 and 26 s to a ready node.
var (
	untilRunning    = span{9 * time.Second, 10 * time.Second}
	untilRegistered = span{6 * time.Second, 8 * time.Second}  // from running
	untilReady      = span{8 * time.Second, 10 * time.Second} // from registered
	untilTerminated = span{5 * time.Second, 8 * time.Second}
)

// spotNotice is the time between the notice and the interruption of a spot instance.
const spotNotice = 2 * time.Minute

// span is a range of durations, from which random ones are drawn.
type span struct{ least, most time.Duration }

func (s span) draw() time.Duration { return s.least + rand.N(s.most-s.least+1) }

// plan sets the times of an instance that starts now.
func (a *Account) plan(i *Instance) {
	i.Launched = a.now()
	i.RunsAt = i.Launched.Add(a.scaled(untilRunning.draw()))
	i.RegistersAt = i.RunsAt.Add(a.scaled(untilRegistered.draw()))
	i.ReadyAt = i.RegistersAt.Add(a.scaled(untilReady.draw()))
}

// due returns the time of the next change of an instance; zero if there is none.
func (i *Instance) due() time.Time {
	switch {
	case i.State == Terminated:
		if i.Left {
			return time.Time{}
		}
		return i.EndsAt
	case i.State == ShuttingDown:
		return i.EndsAt
	case !i.ReclaimedAt.IsZero():
		return i.ReclaimedAt
	case i.State == Pending:
		return i.RunsAt
	case !i.Registered && !i.Lost:
		return i.RegistersAt
	}
	return time.Time{}
}
