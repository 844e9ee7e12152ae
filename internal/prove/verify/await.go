package verify

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"

	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/rules/attack"
)

const (
	// admitting is the time limit for a cluster's policies to read the rules of new namespaces.
	// Usually they take two seconds.
	admitting = 60 * time.Second
	// loading is the time limit for the API server to enforce new policies, for example after
	// croft install. Usually it takes two seconds. A policy that is not enforced by then is a
	// breach.
	loading = 10 * time.Second
	// pause is the interval between two tries.
	pause = 200 * time.Millisecond
)

// awaitReady waits until an ordinary pod is admitted, and then until each policy refuses an attack.
// If either takes too long, the attacks report it.
func (s *Scratch) awaitReady(ctx context.Context, runner *Runner) error {
	if err := s.awaitAdmission(ctx, runner); err != nil {
		return ignoreTimeout(ctx, err)
	}
	return awaitRefusals(ctx, runner, pickOnePerPolicy(s.Attacks()))
}

// awaitAdmission waits until an ordinary pod is admitted.
func (s *Scratch) awaitAdmission(ctx context.Context, runner *Runner) error {
	return wait.PollUntilContextTimeout(ctx, pause, admitting, true, func(ctx context.Context) (bool, error) {
		return s.admitsPods(ctx, runner), nil
	})
}

// awaitRefusals waits until each attack was refused once.
func awaitRefusals(ctx context.Context, runner *Runner, attacks []attack.Attack) error {
	return ignoreTimeout(ctx, wait.PollUntilContextTimeout(ctx, pause, loading, true, func(ctx context.Context) (bool, error) {
		attacks = slices.DeleteFunc(attacks, func(a attack.Attack) bool { return runner.Try(ctx, a).IsGood() })
		return len(attacks) == 0, nil
	}))
}

// ignoreTimeout returns the error of a wait, or nil if only the wait's own time limit has passed.
func ignoreTimeout(ctx context.Context, err error) error {
	if ctx.Err() == nil && wait.Interrupted(err) {
		return nil
	}
	return err
}

// admitsPods reports whether an ordinary pod is admitted in both tenants: its service account
// exists, its quota is counted and the policies have read its rules.
func (s *Scratch) admitsPods(ctx context.Context, runner *Runner) bool {
	for _, t := range []*estate.Tenant{s.attacker, s.target} {
		pod := attack.ReplaceImages(attack.Attack{Kind: attack.Mirror, Attacker: t.Name, Request: &attack.Request{
			Verb: attack.Create, Object: attack.NewPod(t.Namespaces[0], "croft-settle"),
		}}, attack.ChooseImage(&t.Allowances))
		if runner.Try(ctx, pod).Result != Held {
			return false
		}
	}
	return true
}

// pickOnePerPolicy returns the first attack on each admission policy that needs no preparation.
func pickOnePerPolicy(attacks []attack.Attack) []attack.Attack {
	var all []attack.Attack
	seen := sets.New[string]()
	for _, a := range attacks {
		policy := a.StoppedBy.Policy
		if policy == "" || a.Kind != attack.Breach || a.Request == nil || len(a.Setup) > 0 || seen.Has(policy) {
			continue
		}
		seen.Insert(policy)
		all = append(all, a)
	}
	return all
}
