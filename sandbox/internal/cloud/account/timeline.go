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

func (s span) drawDuration() time.Duration { return s.least + rand.N(s.most-s.least+1) }

// planTimes sets the times of an instance that starts now.
func (a *Account) planTimes(i *Instance) {
	i.Launched = a.now()
	i.RunsAt = i.Launched.Add(a.scaleDuration(untilRunning.drawDuration()))
	i.RegistersAt = i.RunsAt.Add(a.scaleDuration(untilRegistered.drawDuration()))
	i.ReadyAt = i.RegistersAt.Add(a.scaleDuration(untilReady.drawDuration()))
}

// nextDue returns the time of the next change of an instance; zero if there is none.
func (i *Instance) nextDue() time.Time {
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
