package account

import (
	"math/rand/v2"
	"time"
)

// The times that an instance takes, as node-latency-for-k8s measured them on two
// nodes of an EKS cluster, without the script in their user data that took 21 and
// 26 of the seconds: 9 and 10 s from pending to a machine that runs, 16 and 17 s to
// a node that is registered, 25 and 26 s to one that is ready.
var (
	untilRunning    = span{9 * time.Second, 10 * time.Second}
	untilRegistered = span{6 * time.Second, 8 * time.Second}  // from there on
	untilReady      = span{8 * time.Second, 10 * time.Second} // and from there
	untilTerminated = span{5 * time.Second, 8 * time.Second}
)

// spotNotice is how long before it is taken away a spot instance is told.
const spotNotice = 2 * time.Minute

// span is a time that lies anywhere between two.
type span struct{ least, most time.Duration }

func (s span) draw() time.Duration { return s.least + rand.N(s.most-s.least+1) }

// plan says when what happens to an instance that starts now.
func (a *Account) plan(i *Instance) {
	i.Launched = a.now()
	i.RunsAt = i.Launched.Add(a.scaled(untilRunning.draw()))
	i.RegistersAt = i.RunsAt.Add(a.scaled(untilRegistered.draw()))
	i.ReadyAt = i.RegistersAt.Add(a.scaled(untilReady.draw()))
}

// due is when the next thing happens to an instance; the zero time if nothing is
// to.
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
