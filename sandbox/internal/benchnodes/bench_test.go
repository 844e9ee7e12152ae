package benchnodes

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/go-logr/logr"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
)

// The flags of `make bench-nodes`.
var (
	output = flag.String("o", "", "measure, and print the outcome: "+strings.Join(Formats, ", "))
	rounds = flag.Int("rounds", 200, "nodes in each way, one at a time")
	nodes  = flag.Int("nodes", 100, "nodes at once")
	others = flag.Float64("others", 3, "calls a second that others make of each action, of the 5 that EC2 allows")
)

// measured is the result of TestBench.
var measured Report

func TestMain(m *testing.M) {
	flag.Parse()
	if *output == "" {
		os.Exit(m.Run())
	}
	if !slices.Contains(Formats, *output) || *rounds < 1 || *nodes < 1 || *others < 0 || *others >= 5 {
		fmt.Fprintf(os.Stderr, "bench-nodes: write -o %s, -rounds and -nodes of at least 1, and -others of 0 to less than 5\n",
			strings.Join(Formats, "|"))
		os.Exit(2)
	}
	// Only the report goes to standard output.
	stdout := os.Stdout
	os.Stdout = os.Stderr
	code := m.Run()
	if code == 0 {
		if err := measured.Write(stdout, *output); err != nil {
			fmt.Fprintln(os.Stderr, "bench-nodes:", err)
			code = 1
		}
	}
	os.Exit(code)
}

// runSimulation runs a measurement in simulated time.
func runSimulation[T any](t *testing.T, measure func(ctx context.Context, dir string) (T, error)) (out T) {
	t.Helper()
	ctrllog.SetLogger(logr.Discard())
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		var err error
		if out, err = measure(ctx, dir); err != nil {
			t.Error(err)
		}
	})
	return out
}

func measureCrowd(t *testing.T, name string, n int, others float64) Side {
	t.Helper()
	return runSimulation(t, func(ctx context.Context, dir string) (Side, error) { return MeasureCrowd(ctx, dir, name, n, others) })
}

func measureAlone(t *testing.T, n int) Alone {
	t.Helper()
	return runSimulation(t, func(ctx context.Context, dir string) (Alone, error) { return MeasureAlone(ctx, dir, n) })
}

// TestBench is `make bench-nodes`.
func TestBench(t *testing.T) {
	if *output == "" {
		t.Skip("`make bench-nodes` runs it")
	}
	measured = Report{Assumptions: listAssumptions(), Alone: measureAlone(t, *rounds)}
	for _, rate := range slices.Compact([]float64{0, *others}) {
		c := Crowd{Nodes: *nodes, Others: rate}
		for _, name := range []string{Croft, Script} {
			c.Sides = append(c.Sides, measureCrowd(t, name, *nodes, rate))
		}
		measured.Crowds = append(measured.Crowds, c)
	}
}

// TestMeasureAlone fails if the script does not delay a node as computed, if croft delays it
// by more than the criterion, or if a node of croft lacks an interface.
func TestMeasureAlone(t *testing.T) {
	const n = 10
	a := measureAlone(t, n)
	for _, y := range a.Ways {
		if len(y.Launched) != n || len(y.Later) != n {
			t.Fatalf("%s: %d nodes of %d", y.Name, len(y.Launched), n)
		}
	}
	croft, script := a.Ways[1], a.Ways[2]
	if got := findPercentile(50, croft.Later); got > Criterion || croft.Incomplete > 0 {
		t.Errorf("croft: the median node is %.1f s later, %d are incomplete", got, croft.Incomplete)
	}
	// 14 calls and 3 s of sleeps.
	if got := findPercentile(50, script.Later); got < 14*command.least.Seconds()+3 || got > 14*command.most.Seconds()+3 {
		t.Errorf("the script: the median node is %.1f s later", got)
	}
}

// TestMeasureCrowdOfCroft lets other clients use three of the five calls a second of an account
// with croft. It fails if two calls for the same change have no effect, if a node stays
// incomplete, or if no call is refused: then the test proves nothing. Refusals are random, so
// there are several rounds, and one change of all rounds may be refused twice: other clients can
// take the tokens for which its second call waited.
func TestMeasureCrowdOfCroft(t *testing.T) {
	twice := 0
	for _, n := range []int{10, 10, 10, 10, 10, 10, 10, 10, 30, 30, 30, 30} {
		s := measureCrowd(t, Croft, n, 3)
		twice += s.Calls.WastedTwice
		if s.Calls.Most > 2 || s.Incomplete > 0 || s.Loose > 0 {
			t.Errorf("%d nodes: one change cost %d calls for nothing; %d nodes are incomplete", n, s.Calls.Most, s.Incomplete)
		}
		if s.Calls.Throttled == 0 {
			t.Errorf("%d nodes: no call was refused", n)
		}
	}
	if twice > 1 {
		t.Errorf("%d changes cost two calls for nothing", twice)
	}
}

// TestMeasureCrowdOfScripts checks the other side of the comparison: many scripts that share
// an account's limits leave nodes incomplete, and two scripts do not reach the limits.
func TestMeasureCrowdOfScripts(t *testing.T) {
	s := measureCrowd(t, Script, 60, 3)
	if s.Incomplete < 20 || s.Calls.WastedTwice == 0 {
		t.Errorf("60 scripts at once: %d nodes are incomplete, %+v", s.Incomplete, s.Calls)
	}
	if s := measureCrowd(t, Script, 2, 0); s.Calls.Throttled > 0 || s.Calls.Made != 2*14 {
		t.Errorf("two scripts: %+v", s.Calls)
	}
}

func TestReport(t *testing.T) {
	r := Report{
		Assumptions: listAssumptions(),
		Alone: Alone{2, []Way{
			{Name: Without, Launched: []float64{20, 30}, Later: []float64{0, 0}},
			{Name: Croft, Launched: []float64{20.5, 34}, Later: []float64{0.5, 4}},
		}},
		Crowds: []Crowd{{2, 3, []Side{{Name: Script, Incomplete: 2}}}},
	}
	var b bytes.Buffer
	for _, format := range Formats {
		if err := r.Write(&b, format); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{
		"| croft | 20.5 s | 34.0 s | 24.5 s | 1.02× | 0.5 s | 4.0 s | 4.0 s | 0 |",
		"| the script in user data | 0 of 2 | - | - | 0 | 0 | 0 | 0 | 2 | 0 |",
		"2 nodes at once, while others make 3 calls a second",
		"With croft, 1 of 2 nodes are later than without networks by at most 3 s",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is not in\n%s", want, b.String())
		}
	}
	_, text, _ := strings.Cut(b.String(), "\n{")
	var again Report
	if err := json.Unmarshal([]byte("{"+text), &again); err != nil || len(again.Crowds) != 1 {
		t.Errorf("%v: %+v", err, again)
	}
}
