package collect

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"croft.dev/croft/internal/cost/ledger"
	"croft.dev/croft/internal/cost/money"
	"croft.dev/croft/internal/cost/podusage"
	"croft.dev/croft/internal/cost/store"
)

// envSeed is the environment variable that repeats a run of TestKilled.
const envSeed = "CROFT_KILL_SEED"

var errKilled = errors.New("killed")

// moment is a place in the life of a process at which it is killed.
type moment int

const (
	afterFlush moment = iota
	// betweenFlushes loses the changes since the last flush.
	betweenFlushes
	// withinWrite is in the middle of a flush, or while an hour is stored.
	withinWrite
	// atStart is before the process has written its first journal and the hours that were due.
	atStart
)

// kills has the number of kills of each kind, together a hundred: half of them are between two flushes.
var kills = map[moment]int{afterFlush: 20, betweenFlushes: 50, withinWrite: 15, atStart: 15}

// kill is the end of a process. Its last complete flush, its end, and the start of the next process.
type kill struct {
	moment
	flushed, at, restart time.Time
	// steps is the number of steps of writes that the process still takes.
	steps int
}

// change is a change of the cluster's objects.
type change struct {
	at    time.Time
	apply func(*cluster)
}

// planKills returns kills in a random order at random times.
func planKills(r *rand.Rand, from time.Time) []kill {
	var all []kill
	for m, n := range kills {
		for range n {
			all = append(all, kill{moment: m})
		}
	}
	slices.SortFunc(all, func(a, b kill) int { return int(a.moment - b.moment) }) // a map has no order
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	for i := range all {
		k := &all[i]
		k.flushed = from.Add(time.Minute + generateDuration(r, 50*time.Minute))
		if k.moment == withinWrite && r.IntN(2) == 0 {
			// The compute at this time stores an hour.
			k.flushed = from.Add(time.Hour - finality).Truncate(time.Hour).Add(finality - 500*time.Millisecond)
			if !k.flushed.After(from) {
				k.flushed = k.flushed.Add(time.Hour)
			}
		}
		k.at = k.flushed
		if k.moment == betweenFlushes || k.moment == withinWrite {
			k.at = k.flushed.Add(generateDuration(r, flushInterval))
		}
		k.restart, k.steps = k.at.Add(generateDuration(r, time.Minute)), r.IntN(20)
		if r.IntN(2) == 0 {
			k.restart = k.at
		}
		from = k.restart
	}
	return all
}

// generateDuration returns a time in milliseconds, less than the given one.
func generateDuration(r *rand.Rand, most time.Duration) time.Duration {
	return time.Duration(r.Int64N(int64(most/time.Millisecond))) * time.Millisecond
}

// planChanges returns changes at random times until a time. Some are between the last flush of each process and the start of
// the next one.
func planChanges(r *rand.Rand, all []kill, until time.Time) []change {
	var times []time.Time
	for at := noon; at.Before(until); at = at.Add(generateDuration(r, 5*time.Minute)) {
		times = append(times, at)
	}
	for _, k := range all {
		if lost := k.at.Sub(k.flushed); lost > time.Millisecond {
			times = append(times, k.flushed.Add(time.Millisecond+generateDuration(r, lost)), k.flushed.Add(time.Millisecond+generateDuration(r, lost)))
		}
		if down := k.restart.Sub(k.at); down > time.Millisecond && r.IntN(2) == 0 {
			times = append(times, k.at.Add(time.Millisecond+generateDuration(r, down)))
		}
	}
	slices.SortFunc(times, time.Time.Compare)
	p := &planner{r: r, pods: map[string][]string{}}
	for _, at := range times {
		p.changes = append(p.changes, change{at, p.chooseChange()})
	}
	return p.changes
}

// planner chooses changes. It knows the objects that exist after them.
type planner struct {
	r       *rand.Rand
	changes []change
	nodes   []string
	// pods are the pods on each node.
	pods map[string][]string
}

// maxNodes is the maximum number of nodes.
const maxNodes = 4

// chooseChange returns a change that is possible now.
func (p *planner) chooseChange() func(*cluster) {
	name := fmt.Sprint(len(p.changes))
	switch action := p.r.IntN(10); {
	case len(p.nodes) == 0 || action == 0 && len(p.nodes) < maxNodes:
		p.nodes = append(p.nodes, name)
		return func(c *cluster) { c.addNode(name, "apps") }
	case action == 1 && len(p.nodes) > 1:
		node := p.nodes[0]
		removed := p.pods[node]
		p.nodes = p.nodes[1:]
		delete(p.pods, node)
		return func(c *cluster) {
			for _, pod := range removed {
				c.removeObject(types.UID(pod))
			}
			c.removeObject(types.UID(node))
			c.removeObject(types.UID("claim-" + node))
		}
	case action < 4:
		code := fmt.Sprint("org", p.r.IntN(3))
		return func(c *cluster) { c.addNamespace("shop", "shop", code) }
	}
	node := p.nodes[p.r.IntN(len(p.nodes))]
	if pods := p.pods[node]; len(pods) == 2 || len(pods) == 1 && p.r.IntN(2) == 0 {
		p.pods[node] = slices.Clone(pods[1:])
		return func(c *cluster) { c.removeObject(types.UID(pods[0])) }
	}
	p.pods[node] = append(p.pods[node], name)
	return func(c *cluster) { c.addPod("shop", name, node) }
}

// life is a cluster with the changes that have not happened yet.
type life struct {
	*cluster
	changes []change
	// flushed is the last time at which everything had been written, and unseen the time of which no process knew everything.
	flushed time.Time
	unseen  time.Duration
}

// applyUntil applies the changes until a time, without any write.
func (l *life) applyUntil(until time.Time) (count int) {
	for len(l.changes) > 0 && !l.changes[0].at.After(until) {
		l.clock.SetTime(l.changes[0].at)
		l.changes[0].apply(l.cluster)
		l.changes = l.changes[1:]
		count++
	}
	l.clock.SetTime(until)
	return count
}

// runUntil applies the changes until a time. A process that runs writes them within a second, and
// computes the hours each minute.
func (l *life) runUntil(until time.Time) {
	l.t.Helper()
	for now := l.clock.Now(); now.Before(until); now = l.clock.Now() {
		next := getEarlier(now.Truncate(computeInterval).Add(computeInterval), until)
		if len(l.changes) > 0 && l.changes[0].at.Before(next) {
			next = getEarlier(l.changes[0].at.Truncate(flushInterval).Add(flushInterval), until)
		}
		l.applyUntil(next)
		if l.collector == nil {
			continue
		}
		if err := l.writePending(); err != nil {
			l.t.Fatal(err)
		}
	}
}

// writePending writes the changes and, each minute, the hours. It measures the usage of pods each minute.
func (l *life) writePending() error {
	isMinute := l.clock.Now().Equal(l.clock.Now().Truncate(computeInterval))
	if isMinute {
		l.collector.measure(l.t.Context())
	}
	if err := l.collector.flush(); err != nil {
		return err
	}
	l.flushed = l.clock.Now()
	if !isMinute {
		return nil
	}
	return l.collector.compute(l.t.Context())
}

// startAgain starts the next process. It counts the time since the last flush.
func (l *life) startAgain() error {
	err := l.tryStart()
	if err == nil {
		l.unseen += l.clock.Now().Truncate(time.Second).Sub(l.flushed.Truncate(time.Second))
		l.flushed = l.clock.Now()
	}
	return err
}

// limitSteps limits the process to a number of steps of its writes.
func (l *life) limitSteps(steps int, act func() error) {
	l.t.Helper()
	l.onStep = func(string) error {
		if steps--; steps < 0 {
			return errKilled
		}
		return nil
	}
	if l.collector != nil {
		l.collector.Store.OnStep = l.onStep
	}
	if err := act(); err != nil && !errors.Is(err, errKilled) {
		l.t.Fatal(err)
	}
	l.onStep = func(string) error { return nil }
	l.collector = nil
}

// runUntilKill lets a process live until a kill, and starts the next one. It returns the number of
// changes that the process saw and did not write.
func (l *life) runUntilKill(k kill) (unwritten int) {
	l.t.Helper()
	l.runUntil(k.flushed)
	unwritten = l.applyUntil(k.at)
	if k.moment == withinWrite {
		l.limitSteps(k.steps, func() error { return errors.Join(l.collector.flush(), l.collector.compute(l.t.Context())) })
	}
	l.killProcess()
	l.runUntil(k.restart)
	if k.moment == atStart {
		l.limitSteps(k.steps, l.startAgain)
	}
	if err := l.startAgain(); err != nil {
		l.t.Fatal(err)
	}
	return unwritten
}

// line is the cost of one workload, of idle capacity or of another part of an hour.
type line struct{ cost, idle, estimated money.Amount }

// hourLines are the lines of an hour, and the time in it of which no process knew everything.
type hourLines struct {
	lines map[string]line
	gaps  time.Duration
}

// readHours returns all stored hours, and the sum of their gaps.
func (c *cluster) readHours(until time.Time) (map[time.Time]hourLines, time.Duration) {
	c.t.Helper()
	hours, sum := map[time.Time]hourLines{}, time.Duration(0)
	var total money.Amount
	for from := noon; from.Before(until); from = from.Add(time.Hour) {
		span := ledger.Span{From: from, Until: from.Add(time.Hour)}
		records, err := c.collector.Store.Read(span)
		if err != nil {
			c.t.Fatal(err)
		}
		if len(records) != 1 || records[0].Span != span {
			c.t.Fatalf("the hour of %s has %d records: %v", from, len(records), records)
		}
		hours[from] = sumLines(&records[0])
		c.checkUsage(&records[0])
		sum += hours[from].gaps
		total += records[0].Nodes
	}
	// Sums of days count each hour once, too.
	for _, r := range c.readRecords(noon) {
		if !r.From.Before(until) {
			break
		}
		total -= r.Nodes
	}
	if total != 0 {
		c.t.Errorf("the hours and the days differ by %s", total)
	}
	return hours, sum
}

// checkUsage expects that each second of a pod, which requests and uses one CPU, is measured once or is unknown.
func (c *cluster) checkUsage(r *store.Record) {
	c.t.Helper()
	for i := range r.Rows {
		row := &r.Rows[i]
		rounding := 1 + row.Measured/7 // in the files of days, after the rounding of the hour
		if off := max(row.UsedCPU-row.Measured, row.Measured-row.UsedCPU); row.Unmeasured < 0 || row.Measured+row.Unmeasured != row.CPU/1000 || off > rounding {
			c.t.Errorf("the hour of %s: %s used %d s of a CPU in %d s, and %d s are unknown, of %d s", r.From, row.Workload, row.UsedCPU, row.Measured,
				row.Unmeasured, row.CPU/1000)
		}
		c.measured += row.Measured
		c.unmeasured += row.Unmeasured
	}
}

func sumLines(r *store.Record) hourLines {
	h := hourLines{lines: map[string]line{}}
	for i := range r.Rows {
		row := &r.Rows[i]
		key := fmt.Sprint(row.Kind, " ", row.Tenant, " ", row.CostCode, " ", row.Pool, " ", row.Workload)
		l := h.lines[key]
		l = line{l.cost + row.Cost, l.idle + row.Idle, l.estimated + row.EstimatedCost + row.EstimatedIdle}
		if l != (line{}) {
			h.lines[key] = l
		}
	}
	for _, g := range r.Gaps {
		h.gaps += g.Until.Sub(g.From)
	}
	return h
}

// compareHours expects the same lines in an hour without gaps. In one with gaps, each line differs by the cost of all nodes in
// the gaps at most.
func compareHours(t *testing.T, from time.Time, got, want hourLines) {
	t.Helper()
	if got.gaps == 0 {
		if !maps.Equal(got.lines, want.lines) {
			t.Errorf("the hour of %s, without a gap:\n%v\nwant\n%v", from, got.lines, want.lines)
		}
		return
	}
	const (
		nodeSecond = 100 // of a node that costs 360,000 millionths an hour
		rounding   = 20
	)
	most := money.Amount(got.gaps/time.Second)*nodeSecond*maxNodes + rounding
	keys := maps.Clone(want.lines)
	maps.Copy(keys, got.lines)
	for key := range keys {
		a, b := got.lines[key], want.lines[key]
		difference := max(a.cost-b.cost, b.cost-a.cost, a.idle-b.idle, b.idle-a.idle)
		if difference > most {
			t.Errorf("the hour of %s, with gaps of %s: %s has %v, want %v", from, got.gaps, key, a, b)
		}
	}
}

// findSeed returns the seed of the environment, or another one each time.
func findSeed(t *testing.T) uint64 {
	t.Helper()
	given := os.Getenv(envSeed)
	if given == "" {
		return rand.Uint64() //nolint:gosec // a test prints its seed
	}
	seed, err := strconv.ParseUint(given, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", envSeed, err)
	}
	return seed
}

// TestKilled kills the process a hundred times, at random points of two days of changes: between two flushes, within the write
// of a journal or of an hour, while it starts, and after a flush. Another process starts at once or within a minute. No hour is
// lost, and none counts twice. An hour without a gap has the same cost as without kills, and no second of usage counts twice. A gap begins with the last flush at the
// earliest, and the hour names it. An object that changed in it may cost more or less, by the cost of the gap at most.
func TestKilled(t *testing.T) {
	seed := findSeed(t)
	t.Logf("%s=%d repeats this run", envSeed, seed)
	r := rand.New(rand.NewPCG(seed, 6)) //nolint:gosec // a test repeats its numbers
	all := planKills(r, noon)
	until := all[len(all)-1].restart.Truncate(time.Hour).Add(time.Hour)
	changes := planChanges(r, all, until)

	undisturbed := &life{cluster: newCluster(t), changes: changes}
	undisturbed.used = &podusage.Pod{CPU: 1_000_000, Memory: 1024}
	undisturbed.startProcess()
	undisturbed.runUntil(until.Add(finality))
	want, gaps := undisturbed.readHours(until)
	if gaps != 0 {
		t.Fatalf("gaps of %s without a kill", gaps)
	}

	killed := &life{cluster: newCluster(t), changes: changes}
	killed.used = undisturbed.used
	killed.onDamage = func(file string, err error) {
		if filepath.Base(filepath.Dir(file)) != "journal" { // whose last entries may be torn
			t.Errorf("%s: %v", file, err)
		}
	}
	killed.startProcess()
	withUnwritten := 0
	for _, k := range all {
		if killed.runUntilKill(k) > 0 && k.moment == betweenFlushes {
			withUnwritten++
		}
	}
	killed.runUntil(until.Add(finality))
	got, gaps := killed.readHours(until)
	if gaps > killed.unseen {
		t.Errorf("gaps of %s, but no process knew everything for %s only", gaps, killed.unseen)
	}
	if len(got) != len(want) {
		t.Fatalf("%d hours, want %d", len(got), len(want))
	}
	t.Logf("usage is known for %d s and unknown for %d s, without kills for %d s and %d s", killed.measured, killed.unmeasured,
		undisturbed.measured, undisturbed.unmeasured)
	if undisturbed.measured < 9*undisturbed.unmeasured || killed.measured < killed.unmeasured {
		t.Error("too little usage is known")
	}
	exact := 0
	for from := range want {
		compareHours(t, from, got[from], want[from])
		if got[from].gaps == 0 {
			exact++
		}
	}
	t.Logf("%d kills, %d of them with changes that were not written, in %d hours, %d of them without a gap; gaps of %s",
		len(all), withUnwritten, len(got), exact, gaps)
	if len(all) != 100 || withUnwritten < len(all)*2/5 || exact == 0 {
		t.Error("the kills are not those that this test is about")
	}
}
