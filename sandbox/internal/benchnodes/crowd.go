package benchnodes

import (
	"context"
	"sync"
	"time"

	"croft.dev/croft/internal/network/attach"
)

// patience is the time limit for a crowd.
const patience = 20 * time.Minute

// Crowd is the result of many nodes at once.
type Crowd struct {
	Nodes int `json:"nodes"`
	// Others is the number of calls a second of each action by other clients of the account.
	Others float64 `json:"others"`
	Sides  []Side  `json:"sides"`
}

// Side is the result of many nodes in one way.
type Side struct {
	Name string `json:"name"`
	// Seconds are the seconds that each complete node took from its launch until it was
	// Ready and took pods that use its networks.
	Seconds []float64 `json:"seconds"`
	// Incomplete counts nodes that at the end have an interface missing or not up, Loose the
	// interfaces that are not attached at the end.
	Incomplete int   `json:"incomplete"`
	Loose      int   `json:"loose"`
	Calls      Calls `json:"calls"`
}

// MeasureCrowd launches n nodes at once, with croft or with the script on each. It writes the
// account's file to dir. others is the number of calls a second that other clients make of each
// action that changes interfaces. They have also used up the burst of each action.
func MeasureCrowd(ctx context.Context, dir, name string, n int, others float64) (Side, error) {
	w, err := newWorld(ctx, dir)
	if err != nil {
		return Side{}, err
	}
	if others > 0 {
		w.simulateOthers(ctx, others)
	}
	var claims []attach.Claim
	for range n {
		claim, err := w.launchInstance()
		if err != nil {
			return Side{}, err
		}
		claims = append(claims, claim)
	}
	side := Side{Name: name}
	if name == Croft {
		err = side.runCroft(ctx, w, claims)
	} else {
		side.runScripts(ctx, w, claims)
	}
	side.Calls, side.Loose = countCalls(w.server.ListCalls()), w.countLoose()
	return side, err
}

// simulateOthers simulates other clients of the account: their calls use up tokens, without any other
// effect.
func (w *world) simulateOthers(ctx context.Context, rate float64) {
	actions := []string{"ec2:CreateNetworkInterface", "ec2:AttachNetworkInterface", "ec2:ModifyNetworkInterfaceAttribute"}
	for _, action := range actions {
		for w.SpendToken(action, true) {
		}
	}
	go func() {
		ticker := time.NewTicker(time.Duration(float64(time.Second) / rate))
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			for _, action := range actions {
				w.SpendToken(action, true)
			}
		}
	}()
}

func (s *Side) runCroft(ctx context.Context, w *world, claims []attach.Claim) error {
	attached, err := newCroft(w).run(ctx, claims)
	for _, c := range claims {
		i, at := w.FindInstance(c.Instance), attached[c.UID]
		if at.IsZero() || !w.isComplete(c.Instance) {
			s.Incomplete++
			continue
		}
		at = computeUsable(i.RegistersAt, i.ReadyAt, at, untilAgent.drawDuration())
		s.Seconds = append(s.Seconds, at.Sub(i.Launched).Seconds())
	}
	return err
}

func (s *Side) runScripts(ctx context.Context, w *world, claims []attach.Claim) {
	outs := make([]scriptResult, len(claims))
	var all sync.WaitGroup
	for n, c := range claims {
		all.Go(func() {
			time.Sleep(time.Until(w.FindInstance(c.Instance).RunsAt.Add(untilScript.drawDuration())))
			outs[n] = (&script{world: w, claim: c}).run(ctx)
		})
	}
	all.Wait()
	time.Sleep(time.Minute) // attachments that take long
	for n, c := range claims {
		i := w.FindInstance(c.Instance)
		if !outs[n].up || !w.isComplete(c.Instance) {
			s.Incomplete++
			continue
		}
		s.Seconds = append(s.Seconds, i.ReadyAt.Add(outs[n].took).Sub(i.Launched).Seconds())
	}
}
