package verify_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/internal/prove/verify"
	"croft.dev/croft/internal/rules/attack"
)

// mutant is a mutation of the walls that removes or inverts one part of them.
type mutant struct {
	// name describes the mutation.
	name string
	// what is equal for the same mutation of several tenants.
	what string
	// object is the mutated object. Mutants of one object run one after the other.
	object string
	mutate mutation
	// scenes are the scenes in which it can be detected, or all if nil.
	scenes []*proving
	// suspects selects the attacks that are tried first.
	suspects func(attack.Attack) bool
	// buried is set instead of mutate and suspects if the suspects are known only after the
	// mutation.
	buried *hiddenRule
}

// finding is the result of a mutant.
type finding struct {
	mutant, noticedBy string
	// group is set if many mutants are counted together, because a table would be too long.
	group string
	err   error
}

const (
	// patience is the maximum time until a mutant, or its end, is detected. Policies take a
	// second or two.
	patience = 30 * time.Second
	// together is the number of mutants, of different objects, that exist at the same time.
	together = 6
)

// lab is a cluster with several pairs of scratch tenants, in which mutants are tried.
type lab struct {
	t       *testing.T
	admin   client.Client
	scenes  []*proving
	runners map[*proving]*verify.Runner
	// sound are the attacks that were held before any mutation, by scene.
	sound map[*proving][]attack.Attack
	// offline is tried before the cluster, if it is not nil.
	offline *offlineLab
	// trusts limits the cluster's attacks to the ones that need a cluster, and one for each
	// policy.
	trusts bool
	// compares enables the comparison of the cluster's answers with the evaluator's.
	compares bool
	mu       sync.Mutex
	// withoutCluster is the number of mutants that were detected without the cluster.
	withoutCluster int
}

// addScene adds a scene to the lab after it has checked that all of the scene's attacks are held.
func (l *lab) addScene(s *proving) {
	if l.runners == nil {
		l.admin, l.runners, l.sound = s.admin, map[*proving]*verify.Runner{}, map[*proving][]attack.Attack{}
	}
	l.scenes = append(l.scenes, s)
	l.runners[s] = s.newRunner(l.t)
	answered := &answers{}
	if l.compares {
		l.runners[s].Tell(answered.recordAnswer)
	}
	attacks := s.scratch.Attacks()
	trusted := map[string]bool{}
	if l.trusts {
		trusted = l.listOfflineHeld(s)
	}
	results := s.runUntilStopped(l.t, l.runners[s], slices.DeleteFunc(slices.Clone(attacks), func(a attack.Attack) bool { return trusted[a.Name] }))
	for _, a := range attacks {
		if trusted[a.Name] {
			l.sound[s] = append(l.sound[s], a)
		}
	}
	if l.compares {
		answered.expectAgreement(l.t, s, l.runners[s])
		l.runners[s].Tell(nil)
	}
	for _, r := range results {
		a := s.findAttack(l.t, r.Name)
		switch {
		case s.isLackingKind(r):
		case a.Pairs != nil && (a.Kind == attack.Mirror || len(l.scenes) > 1):
			// It concerns all tenants of the cluster, but the scenes are of several platforms.
		case r.Result != verify.Held:
			l.t.Errorf("%s: %s/%s is %s before anything is taken away: %s", s.name, r.Wall, r.Name, r.Result, r.Message)
		default:
			l.sound[s] = append(l.sound[s], a)
		}
	}
	if len(l.scenes) > 1 {
		// Tenants of one scene connect by a consent that the platforms of the others do not have.
		for scene := range l.sound {
			l.sound[scene] = slices.DeleteFunc(l.sound[scene], func(a attack.Attack) bool { return a.Pairs != nil })
		}
	}
}

// listOfflineHeld returns the names of a scene's attacks that are held without the cluster. It
// leaves out one attack on each policy, which shows that the policy is in force in the cluster.
func (l *lab) listOfflineHeld(s *proving) map[string]bool {
	if l.offline == nil {
		l.offline = newOfflineLab(l.t, nil)
	}
	l.offline.addScene(l.t, s, func(attack.Attack) bool { return true })
	names, shown := map[string]bool{}, map[string]bool{}
	for _, a := range l.offline.sound[s] {
		if by := a.Attacker + a.StoppedBy.Name + a.StoppedBy.Policy; a.Kind == attack.Breach && !shown[by] {
			shown[by] = true
			continue
		}
		names[a.Name] = true
	}
	return names
}

// selectAttacks returns the attacks of a scene that could detect a mutant.
func (l *lab) selectAttacks(s *proving, want func(attack.Attack) bool) []attack.Attack {
	return slices.DeleteFunc(slices.Clone(l.sound[s]), func(a attack.Attack) bool { return !want(a) })
}

// awaitBreach tries attacks until the result of one is BREACHED, and returns its scene and name.
func (l *lab) awaitBreach(ctx context.Context, scenes []*proving, want func(attack.Attack) bool, within time.Duration) (*proving, string) {
	var where *proving
	var which string
	_ = wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, within, true, func(ctx context.Context) (bool, error) {
		for _, s := range scenes {
			l.runners[s].Refresh()
			trying, stop := context.WithCancel(ctx)
			_, _ = l.runners[s].Run(trying, l.selectAttacks(s, want), func(r verify.Result) {
				if r.Result == verify.Breached && which == "" {
					where, which = s, r.Name
					stop()
				}
			})
			stop()
			if which != "" {
				return true, nil
			}
		}
		return false, nil
	})
	return where, which
}

// tryMutant applies a mutant and returns the name of the attack that detected it, of the attacks
// that want selects. When it returns, the mutation is undone and the attack is held again.
func (l *lab) tryMutant(m mutant, want func(attack.Attack) bool, within time.Duration) finding {
	ctx := l.t.Context()
	f := finding{mutant: m.name}
	scenes := m.scenes
	if scenes == nil {
		scenes = l.scenes
	}
	var undo func(context.Context) error
	var err error
	if m.buried != nil {
		undo, want, err = l.removePartsBefore(ctx, m.buried)
	} else {
		undo, err = l.applyMutation(ctx, m.mutate)
	}
	if err != nil {
		f.err = fmt.Errorf("%s: %w", m.name, err)
		return f
	}
	where, which := l.awaitBreach(ctx, scenes, want, within)
	if err := undo(ctx); err != nil {
		f.err = fmt.Errorf("%s: taking it back: %w", m.name, err)
		return f
	}
	if which == "" {
		return f
	}
	f.noticedBy = which
	healed := func(a attack.Attack) bool { return a.Name == which }
	err = wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, 2*patience, true, func(ctx context.Context) (bool, error) {
		l.runners[where].Refresh()
		results, err := l.runners[where].Run(ctx, l.selectAttacks(where, healed), nil)
		return err == nil && len(results) == 1 && results[0].Result == verify.Held, nil
	})
	if err != nil {
		f.err = fmt.Errorf("%s: %s does not hold again after it", m.name, which)
	}
	return f
}

// runMutants applies mutants: first the mutants of different objects at the same time, with their
// suspects only; then each undetected mutant alone, with every attack.
//
// Mutants that were detected without a cluster are skipped.
func (l *lab) runMutants(mutants []mutant) []finding {
	findings := make([]finding, len(mutants))
	if l.offline != nil {
		findings = l.offline.runMutants(l.t.Context(), l.scenes, mutants)
	}
	turns := make(chan struct{}, together)
	var group sync.WaitGroup
	of := map[string][]int{}
	var objects []string
	for i, m := range mutants {
		if len(of[m.object]) == 0 {
			objects = append(objects, m.object)
		}
		of[m.object] = append(of[m.object], i)
	}
	for _, object := range objects {
		turns <- struct{}{}
		group.Go(func() {
			defer func() { <-turns }()
			for _, i := range of[object] {
				if findings[i].noticedBy != "" || findings[i].err != nil {
					l.mu.Lock()
					l.withoutCluster++
					l.mu.Unlock()
					continue
				}
				findings[i] = finding{mutant: mutants[i].name}
				if l.hasSuspects(mutants[i]) {
					findings[i] = l.tryMutant(mutants[i], mutants[i].suspects, patience/3)
				}
				printFinding(findings[i])
			}
		})
	}
	group.Wait()
	for i, f := range findings {
		if f.noticedBy == "" && f.err == nil && mutants[i].buried == nil {
			findings[i] = l.tryMutant(mutants[i], func(a attack.Attack) bool { return a.Sweep == nil }, patience/3)
			printFinding(findings[i])
		}
	}
	return findings
}

// printFinding prints the progress.
func printFinding(f finding) { fmt.Printf("  %s -> %s\n", f.mutant, cmp.Or(f.noticedBy, "-")) }

// hiddenRule is a rule that no request reaches because of earlier parts of the same kind. The parts
// are removed first. The rule must then refuse some of the attacks, and one of these attacks
// must detect the removal of the rule.
type hiddenRule struct {
	before  []mutation
	rule    mutation
	attacks func(attack.Attack) bool
	// refusal is a substring of the rule's refusals.
	refusal string
}

// removePartsBefore removes the parts before a rule, and then the rule. It returns a function that
// undoes both, and selects the attacks that the rule refused in between.
func (l *lab) removePartsBefore(ctx context.Context, b *hiddenRule) (func(context.Context) error, func(attack.Attack) bool, error) {
	refused := map[string]bool{}
	reached := func(ctx context.Context) (bool, error) {
		results, err := l.runners[l.scenes[0]].Run(ctx, l.selectAttacks(l.scenes[0], b.attacks), nil)
		for _, r := range results {
			if strings.Contains(r.Message, b.refusal) {
				refused[r.Name] = true
			}
		}
		return len(refused) > 0, err
	}
	for _, part := range b.before {
		undo, err := l.applyMutation(ctx, part)
		if err != nil {
			return nil, nil, err
		}
		if wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, patience/6, true, reached) != nil {
			if err := undo(ctx); err != nil {
				return nil, nil, err
			}
			continue
		}
		// The policy may have come into force during the last attempt.
		if _, err := reached(ctx); err != nil {
			return nil, nil, errors.Join(err, undo(ctx))
		}
		again, err := l.applyMutation(ctx, b.rule)
		if err != nil {
			return nil, nil, errors.Join(err, undo(ctx))
		}
		return func(ctx context.Context) error { return errors.Join(again(ctx), undo(ctx)) },
			func(a attack.Attack) bool { return refused[a.Name] }, nil
	}
	return nil, nil, fmt.Errorf("no attack gets as far as to %s", b.refusal)
}

// hasSuspects reports whether the mutant has suspects.
func (l *lab) hasSuspects(m mutant) bool {
	scenes := m.scenes
	if scenes == nil {
		scenes = l.scenes
	}
	return m.buried != nil || slices.ContainsFunc(scenes, func(s *proving) bool { return len(l.selectAttacks(s, m.suspects)) > 0 })
}

// applyMutation applies a mutation in the cluster, and returns a function that undoes it.
func (l *lab) applyMutation(ctx context.Context, m mutation) (func(context.Context) error, error) {
	var undos []func(context.Context) error
	undo := func(ctx context.Context) error {
		var errs []error
		for _, u := range slices.Backward(undos) {
			errs = append(errs, u(ctx))
		}
		return errors.Join(errs...)
	}
	for _, c := range m {
		u, err := l.applyChange(ctx, c)
		if err != nil {
			return nil, errors.Join(err, undo(ctx))
		}
		undos = append(undos, u)
	}
	return undo, nil
}

func (l *lab) applyChange(ctx context.Context, c change) (func(context.Context) error, error) {
	if c.added {
		return func(ctx context.Context) error { return l.admin.Delete(ctx, c.object) }, l.putObject(ctx, c.object)
	}
	before := c.object.DeepCopyObject().(client.Object)
	if err := l.admin.Get(ctx, client.ObjectKeyFromObject(c.object), before); err != nil {
		return nil, err
	}
	undo := func(ctx context.Context) error { return l.putObject(ctx, before) }
	if c.edit == nil {
		return undo, l.admin.Delete(ctx, c.object.DeepCopyObject().(client.Object))
	}
	after := before.DeepCopyObject().(client.Object)
	c.edit(after)
	return undo, l.putObject(ctx, after)
}

// putObject creates or overwrites an object.
func (l *lab) putObject(ctx context.Context, o client.Object) error {
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		now, desired := o.DeepCopyObject().(client.Object), o.DeepCopyObject().(client.Object)
		err := l.admin.Get(ctx, client.ObjectKeyFromObject(o), now)
		if apierrors.IsNotFound(err) {
			desired.SetResourceVersion("")
			desired.SetUID("")
			return l.admin.Create(ctx, desired)
		}
		if err != nil {
			return err
		}
		desired.SetResourceVersion(now.GetResourceVersion())
		return l.admin.Update(ctx, desired)
	})
}
