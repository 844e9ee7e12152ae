package model

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"croft.dev/croft/internal/operate/install"
	"croft.dev/croft/internal/operate/operator/operatortest"
	"croft.dev/croft/internal/test/sandbox"
)

// Environment variables to repeat a run. envLength is the number of steps, envShrink the time for
// finding a shorter sequence.
const (
	envSeed   = "CROFT_MODEL_SEED"
	envLength = "CROFT_MODEL_LENGTH"
	envSteps  = "CROFT_MODEL_STEPS"
	envShrink = "CROFT_MODEL_SHRINK"
)

const (
	// length is the number of steps without CROFT_MODEL_LENGTH: some three minutes.
	length = 800
	// batch is the number of steps between two comparisons with the declared state.
	batch = 50
	// mostTime is the time within which a planted bug must be found.
	mostTime = time.Minute
)

// envRun is set by `make model`.
const envRun = "CROFT_TEST_MODEL"

// skipUnlessRequested skips a test of the model on a control plane. A suite that decides about a commit must
// not contain a random course. TestInvariants evaluates a violation of each family in `make test`.
func skipUnlessRequested(t *testing.T) {
	t.Helper()
	if readVariable(envRun) == "" {
		t.Skip("`make model` runs it")
	}
}

func readVariable(name string) string { return os.Getenv(name) }

// TestModel fails if a random sequence of actions and faults violates an invariant.
func TestModel(t *testing.T) {
	skipUnlessRequested(t)
	seed, steps := choosePlan(t)
	w := newWorld(startCluster(t))
	w.resetWorld(nil)
	began := time.Now()
	found, err := w.runSteps(t.Context(), steps)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("the last of %d steps is %d, after %s; effective: %s", len(steps), w.executed, time.Since(began).Round(time.Second), formatCounts(w.done))
	if found == nil {
		return
	}
	t.Errorf("%s=%d: %s", envSeed, seed, found)
	shortest := w.shrinkSteps(steps, found)
	t.Logf("%s=1 %s=%d %s=%d %s=%s repeats it:\n%s", envRun, envSeed, seed, envLength, len(steps), envSteps, formatSelection(shortest), formatSteps(shortest))
}

// startCluster starts an API server without a cache for watches. With it, watches would miss versions while the API
// server restarts: the new cache begins at its first list.
func startCluster(t *testing.T) *operatortest.Fixture {
	t.Helper()
	return operatortest.StartWith(t, sandbox.Options{Components: sandbox.WithControllers, APIServerArgs: []string{"--watch-cache=false"}}, install.Options{})
}

// choosePlan returns the seed and the steps that the environment selects.
func choosePlan(t *testing.T) (uint64, []step) {
	t.Helper()
	seed, n := uint64(time.Now().UnixNano()), uint64(length)
	for name, value := range map[string]*uint64{envSeed: &seed, envLength: &n} {
		if given := readVariable(name); given != "" {
			var err error
			if *value, err = strconv.ParseUint(given, 10, 63); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
	}
	t.Logf("%s=%d", envSeed, seed)
	steps, err := selectSteps(generateSteps(seed, int(n)), readVariable(envSteps)) //nolint:gosec // at most 63 bits
	if err != nil {
		t.Fatalf("%s: %v", envSteps, err)
	}
	return seed, steps
}

// runSteps executes steps until one violates an invariant.
func (w *world) runSteps(ctx context.Context, steps []step) (*violation, error) {
	for i, s := range steps {
		if err := w.doStep(ctx, s); err != nil {
			return nil, err
		}
		last := i == len(steps)-1
		if last || s.action == awaitApplied || steps[i+1].index/batch != s.index/batch {
			if v, err := w.settleAndCheck(ctx, last); v != nil || err != nil {
				return v, err
			}
		}
	}
	return nil, nil
}

// shrinkSteps returns a shorter sequence that violates the same family of invariants.
func (w *world) shrinkSteps(steps []step, found *violation) []step {
	budget := 3 * time.Minute
	if given := readVariable(envShrink); given != "" {
		var err error
		if budget, err = time.ParseDuration(given); err != nil {
			w.Fatalf("%s: %v", envShrink, err)
		}
	}
	end := time.Now().Add(budget)
	mayContinue := func() bool { return time.Now().Before(end) }
	// Steps after the violation are not needed.
	last := w.executed
	steps = steps[:slices.IndexFunc(steps, func(s step) bool { return s.index == last })+1]
	return shrinkSequence(steps, func(fewer []step) bool {
		w.resetWorld(nil)
		again, err := w.runSteps(w.Context(), fewer)
		if err != nil {
			w.Logf("with %d steps: %v", len(fewer), err)
		}
		return again != nil && again.family == found.family
	}, mayContinue)
}

func formatSteps(steps []step) string {
	var lines []string
	for _, s := range steps {
		lines = append(lines, s.String())
	}
	return strings.Join(lines, "\n")
}

func formatCounts(counts map[string]int) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		all = append(all, fmt.Sprintf("%s %d", strings.TrimSuffix(name, ":"), counts[name]))
	}
	return strings.Join(all, ", ")
}

// TestPlantedBugs fails if the model does not find a bug of each family within a minute in the bug's fixed
// course, or if it finds a violation in the same course without the bug.
func TestPlantedBugs(t *testing.T) {
	skipUnlessRequested(t)
	w := newWorld(startCluster(t))
	for _, bug := range listBugs() {
		t.Run(bug.family, func(t *testing.T) {
			w.resetWorld(nil)
			if found, err := w.runSteps(t.Context(), bug.course); found != nil || err != nil {
				t.Fatalf("without the bug: found %v, error %v", found, err)
			}
			w.resetWorld(bug)
			began := time.Now()
			found, err := w.runSteps(t.Context(), bug.course)
			took := time.Since(began).Round(time.Second)
			switch {
			case err != nil:
				t.Fatal(err)
			case found == nil || found.family != bug.family:
				t.Fatalf("after %s, found: %v", took, found)
			case took > mostTime:
				t.Errorf("found after %s", took)
			}
			t.Logf("found after %s and %d of %d steps: %s", took, w.executed+1, len(bug.course), found)
		})
	}
}
