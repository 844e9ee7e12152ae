package recent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	coreapply "k8s.io/client-go/applyconfigurations/core/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/cost/ledger"
	"croft.dev/croft/internal/cost/money"
	"croft.dev/croft/internal/cost/store"
	"croft.dev/croft/internal/declare/rights"
	"croft.dev/croft/internal/operate/install"
	"croft.dev/croft/internal/operate/operator/operatortest"
	"croft.dev/croft/internal/test/sandbox"
)

// evening is the first hour of these tests.
var evening = time.Date(2026, 11, 23, 21, 0, 0, 0, time.UTC)

func makeHour(n int) ledger.Span {
	from := evening.Add(time.Duration(n) * time.Hour)
	return ledger.Span{From: from, Until: from.Add(time.Hour)}
}

// makeRecord returns an hour with random names, which hardly compress. Each hour has its own power of two.
func makeRecord(n, rows int) store.Record {
	r := rand.New(rand.NewPCG(uint64(n), 1)) //nolint:gosec // a test repeats its numbers
	record := store.Record{Span: makeHour(n), Currency: "USD", Nodes: money.Amount(1) << (n % 60)}
	tenant, namespace := "", ""
	for i := range rows {
		if i%6 == 0 {
			tenant = fmt.Sprintf("team-%06d-%08x", i, r.Uint32())
		}
		if i%3 == 0 {
			namespace = fmt.Sprintf("%s-%08x", tenant, r.Uint32())
		}
		row := ledger.Row{Key: ledger.Key{Kind: ledger.Tenant, Resource: ledger.NodeResource, Pool: "apps",
			CapacityType: "spot", InstanceType: "m5.2xlarge", Tenant: tenant, CostCode: fmt.Sprintf("org-%03d", i/6%300), Namespace: namespace,
			Workload: fmt.Sprintf("Deployment/%02d-%016x", i%3, r.Uint64()), PriceSource: "prices.yaml"},
			CPU: r.Int64N(1 << 24), Memory: r.Int64N(1 << 24), Cost: money.Amount(r.Int64N(1 << 20)), Idle: money.Amount(r.Int64N(1 << 20))}
		row.Weight = row.CPU*9216 + row.Memory*1000
		record.Rows = append(record.Rows, row)
	}
	slices.SortFunc(record.Rows, func(a, b ledger.Row) int { return a.Compare(b.Key) })
	return record
}

var errKilled = errors.New("killed")

// world is a cluster for processes that copy their hours. A process has the rights of the installed ledger.
type world struct {
	*operatortest.Fixture
	ledger client.Client
	// steps is the number of steps of writes, of files and of ConfigMaps, after which a process is killed.
	steps int
	// mostBytes limits the content of a ConfigMap.
	mostBytes int
	log       bytes.Buffer
	results   map[Result]int
}

func startWorld(t *testing.T) *world {
	t.Helper()
	f := operatortest.StartWith(t, sandbox.Options{Components: sandbox.APIOnly}, install.Options{Image: "croft:test", Ledger: true})
	return &world{Fixture: f, ledger: f.Impersonate("system:serviceaccount:" + v1alpha1.SystemNamespace + ":" + install.LedgerName)}
}

// begin returns the world of a subtest: without ConfigMaps of others.
func (w *world) begin(t *testing.T) *world {
	t.Helper()
	inner := &world{Fixture: w.For(t), ledger: w.ledger, mostBytes: mostBytes, results: map[Result]int{}}
	inner.deleteCopies()
	return inner
}

func (w *world) deleteCopies() {
	w.Helper()
	w.steps = 1 << 30
	if err := w.Client.DeleteAllOf(w.Context(), &corev1.ConfigMap{}, client.InNamespace(v1alpha1.SystemNamespace), client.MatchingLabels(Labels)); err != nil {
		w.Fatal(err)
	}
}

// takeStep ends a process before its last step. The tests of the store have the steps of a write of a file.
func (w *world) takeStep(step string) error {
	if step != "rename" && step != "remove" && step != "apply" {
		return nil
	}
	if w.steps--; w.steps < 0 {
		return errKilled
	}
	return nil
}

// killedClient is killed at a step.
type killedClient struct {
	client.Client
	world *world
}

func (c killedClient) Apply(ctx context.Context, o runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	if err := c.world.takeStep("apply"); err != nil {
		return err
	}
	return c.Client.Apply(ctx, o, opts...)
}

// process is a process that leads.
type process struct {
	*Copier
	*store.Store
}

// start starts a process, which leads, long after the hours of these tests.
func (w *world) start(directory string) (process, error) {
	w.Helper()
	s, err := store.Open(directory, func(string, error) {})
	if err != nil {
		w.Fatal(err)
	}
	s.OnStep = w.takeStep
	if err := s.Lead(store.Leader{Identity: "pod"}); err != nil {
		return process{}, err
	}
	c := New(Options{Store: s, Client: killedClient{w.ledger, w}, Clock: clocktesting.NewFakePassiveClock(makeHour(100).Until),
		Log: slog.New(slog.NewTextHandler(&w.log, nil)), OnCopied: func(r Result) { w.results[r]++ }})
	c.mostBytes = w.mostBytes
	return process{c, s}, c.Restore(w.Context())
}

// mustStart starts a process that survives its start.
func (w *world) mustStart(directory string) process {
	w.Helper()
	p, err := w.start(directory)
	if err != nil {
		w.Fatal(err)
	}
	return p
}

// writeHour stores an hour, and copies it.
func (p process) writeHour(ctx context.Context, r store.Record) error {
	if err := p.WriteHour(r); err != nil {
		return err
	}
	return p.Copy(ctx, r.Until)
}

// readFile returns the content of the file of an hour, or nil if it does not exist.
func (w *world) readFile(directory string, hour ledger.Span) []byte {
	w.Helper()
	found, err := filepath.Glob(filepath.Join(directory, "hours", hour.From.Format("20060102T15")+".*"))
	if err != nil || len(found) > 1 {
		w.Fatal(found, err)
	}
	if len(found) == 0 {
		return nil
	}
	data, err := os.ReadFile(found[0])
	if err != nil {
		w.Fatal(err)
	}
	return data
}

// expectRestored loses the volume, and expects the same files of hours in another one.
func (w *world) expectRestored(files map[int][]byte) {
	w.Helper()
	directory := w.TempDir()
	w.mustStart(directory)
	for n, want := range files {
		if got := w.readFile(directory, makeHour(n)); !bytes.Equal(got, want) {
			w.Errorf("the hour of %s has %d bytes, want the same %d bytes: %s", makeHour(n).From, len(got), len(want), w.log.String())
		}
	}
}

// expectLog expects a line of the log with all parts.
func (w *world) expectLog(parts ...string) {
	w.Helper()
	for line := range strings.Lines(w.log.String()) {
		found := true
		for _, part := range parts {
			found = found && strings.Contains(line, part)
		}
		if found {
			return
		}
	}
	w.Errorf("no line with %q in %s", parts, w.log.String())
}

// TestCopies copies hours to a real API server, with the rights of an installation, and restores them.
func TestCopies(t *testing.T) {
	sandbox.EndToEnd(t)
	all := startWorld(t)
	t.Run("volume lost", func(t *testing.T) { testLostVolume(all.begin(t)) })
	t.Run("limits", func(t *testing.T) { testLimits(all.begin(t)) })
	t.Run("kills", func(t *testing.T) { testKills(all.begin(t)) })
	t.Run("kills of a restore", func(t *testing.T) { testKillsOfRestore(all.begin(t)) })
	t.Run("changed ConfigMaps", func(t *testing.T) { testChanged(all.begin(t)) })
	t.Run("two leaders", func(t *testing.T) { testTwoLeaders(all.begin(t)) })
	t.Run("rights", func(t *testing.T) { testRights(all.begin(t)) })
}

// testLostVolume loses the volume after more hours than are copied. The last hours are restored.
func testLostVolume(w *world) {
	directory := w.TempDir()
	p := w.mustStart(directory)
	const hours = rights.CopiedHours + 3
	files := map[int][]byte{}
	for n := range hours {
		if err := p.writeHour(w.Context(), makeRecord(n, 20)); err != nil {
			w.Fatal(err)
		}
		files[n] = w.readFile(directory, makeHour(n))
	}
	if w.results[Written] != hours {
		w.Errorf("%v, want %d written", w.results, hours)
	}
	for n := range hours - rights.CopiedHours {
		files[n] = nil
	}
	w.expectRestored(files)
	// A start with all files writes nothing.
	w.results = map[Result]int{}
	p = w.mustStart(directory)
	if err := p.Copy(w.Context(), makeHour(hours).From); err != nil || len(w.results) > 0 {
		w.Errorf("a second start: %v %v", w.results, err)
	}
}

// testLimits copies the hour of 5,000 tenants with two namespaces each, with one and with three workloads in each of
// them, and one that is too large.
func testLimits(w *world) {
	directory := w.TempDir()
	p := w.mustStart(directory)
	files := map[int][]byte{}
	for n, c := range []struct {
		rows, parts int
		result      Result
	}{{10_000, 1, Written}, {30_000, 2, Written}, {100_000, 0, TooLarge}, {20, 1, Written}} {
		before := w.results[c.result]
		if err := p.writeHour(w.Context(), makeRecord(n, c.rows)); err != nil {
			w.Fatal(err)
		}
		if w.results[c.result] != before+1 {
			w.Errorf("%d rows: %v, want one more %s", c.rows, w.results, c.result)
		}
		if files[n] = w.readFile(directory, makeHour(n)); files[n] == nil {
			w.Errorf("the hour with %d rows is not on the volume", c.rows)
		}
		bytes := 0
		for part := range rights.CopyParts {
			var o corev1.ConfigMap
			err := w.Client.Get(w.Context(), client.ObjectKey{Namespace: v1alpha1.SystemNamespace, Name: rights.NameCopy(makeHour(n).From, part+1)}, &o)
			if (err == nil) != (part < c.parts) || len(o.BinaryData[dataKey]) > mostBytes {
				w.Errorf("%d rows, part %d: %v, %d bytes", c.rows, part+1, err, len(o.BinaryData[dataKey]))
			}
			bytes += len(o.BinaryData[dataKey])
		}
		w.Logf("%d rows: a file of %d bytes, %d bytes in ConfigMaps", c.rows, len(files[n]), bytes)
	}
	w.expectLog("too large", makeHour(2).From.Format("2006-01-02T15:04"))
	files[2] = nil
	w.expectRestored(files)
}

// killedHours is the number of hours in tests with kills. Their day ends with them.
const killedHours = 3

// work is the life of a process: it continues at the first hour that is not stored. copied has the files of the hours
// whose copies are complete.
func (w *world) work(p process, directory string, copied map[int][]byte) error {
	last, err := p.FindLast()
	if err != nil {
		return err
	}
	first := 0
	if !last.IsZero() {
		first = int(last.Sub(evening) / time.Hour)
		if err := p.Copy(w.Context(), last); err != nil {
			return err
		}
	}
	for n := first; n < killedHours; n++ {
		if err := p.writeHour(w.Context(), makeRecord(n, 40)); err != nil {
			return err
		}
		copied[n] = w.readFile(directory, makeHour(n))
		if err := p.Maintain(makeHour(n).Until); err != nil {
			return err
		}
	}
	return nil
}

// checkOnce expects each hour exactly once in a store.
func (w *world) checkOnce(kill int, p process) {
	w.Helper()
	records, err := p.Read(ledger.Span{From: evening, Until: evening.Add(48 * time.Hour)})
	if err != nil {
		w.Fatal(err)
	}
	sum, rows := money.Amount(0), map[string]int{}
	for i := range records {
		sum += records[i].Nodes
		for _, row := range records[i].Rows {
			rows[row.Workload]++
		}
	}
	if sum != 1<<killedHours-1 {
		w.Errorf("kill at step %d: the hours are %b", kill, sum)
	}
	for workload, n := range rows {
		if n != 1 {
			w.Errorf("kill at step %d: %s counts %d times", kill, workload, n)
		}
	}
}

// testKills kills a process at each step of its writes: before a file exists, between a file and its ConfigMaps, and between two
// ConfigMaps. With the volume, the next process continues and completes the copies. Without it, the next process
// restores each hour whose copy was complete, with the same content.
func testKills(w *world) {
	w.mostBytes = 1200
	partsSeen := false
	for kill := 0; ; kill++ {
		done := false
		for _, isLost := range []bool{false, true} {
			w.deleteCopies()
			directory, copied := w.TempDir(), map[int][]byte{}
			w.steps = kill
			p, err := w.start(directory)
			if err == nil {
				err = w.work(p, directory, copied)
			}
			if err != nil && !errors.Is(err, errKilled) {
				w.Fatalf("kill at step %d: %v", kill, err)
			}
			done, w.steps = err == nil, 1<<30
			if isLost {
				directory = w.TempDir()
			}
			next := w.mustStart(directory)
			if isLost {
				for n, want := range copied {
					if got := w.readFile(directory, makeHour(n)); !bytes.Equal(got, want) {
						w.Errorf("kill at step %d: the hour %d has %d bytes, want the same %d bytes", kill, n, len(got), len(want))
					}
				}
			}
			if err := w.work(next, directory, map[int][]byte{}); err != nil {
				w.Fatalf("kill at step %d: %v", kill, err)
			}
			w.checkOnce(kill, next)
			// All copies are complete now.
			other := w.mustStart(w.TempDir())
			w.checkOnce(kill, other)
		}
		partsSeen = partsSeen || w.countCopies() > killedHours
		if done {
			w.Logf("killed at up to %d steps", kill)
			break
		}
	}
	if !partsSeen {
		w.Error("no hour had two ConfigMaps")
	}
}

func (w *world) countCopies() int {
	w.Helper()
	var list corev1.ConfigMapList
	if err := w.Client.List(w.Context(), &list, client.InNamespace(v1alpha1.SystemNamespace), client.MatchingLabels(Labels)); err != nil {
		w.Fatal(err)
	}
	return len(list.Items)
}

// testKillsOfRestore kills a process at each step of a restore. The next process restores the rest.
func testKillsOfRestore(w *world) {
	directory, copied := w.TempDir(), map[int][]byte{}
	for n := range 3 {
		p := w.mustStart(directory)
		if err := p.writeHour(w.Context(), makeRecord(n, 40)); err != nil {
			w.Fatal(err)
		}
		copied[n] = w.readFile(directory, makeHour(n))
	}
	for kill := 0; ; kill++ {
		directory := w.TempDir()
		w.steps = kill
		_, err := w.start(directory)
		if err != nil && !errors.Is(err, errKilled) {
			w.Fatal(err)
		}
		w.steps = 1 << 30
		w.mustStart(directory)
		for n, want := range copied {
			if got := w.readFile(directory, makeHour(n)); !bytes.Equal(got, want) {
				w.Errorf("kill at step %d: the hour %d has %d bytes, want the same %d bytes", kill, n, len(got), len(want))
			}
		}
		if err == nil {
			break
		}
	}
}

// testChanged changes the ConfigMaps of the last hour. Each change costs this hour only, and a line of the log names the
// reason. The next process stores the hour itself, and replaces the unusable ConfigMaps.
func testChanged(w *world) {
	w.mostBytes = 1200
	const unrestored, ignored = "a lost hour is not restored", "is ignored"
	changed := makeHour(1).From
	setHour := func(o *corev1.ConfigMap, hour time.Time) { o.Annotations[hourAnnotation] = hour.Format(time.RFC3339) }
	for name, c := range map[string]struct {
		change func(head, second *corev1.ConfigMap)
		log    []string
	}{
		"a byte":               {func(head, _ *corev1.ConfigMap) { head.BinaryData[dataKey][200] ^= 1 }, []string{unrestored}},
		"a byte of the second": {func(_, second *corev1.ConfigMap) { second.BinaryData[dataKey][20] ^= 1 }, []string{unrestored}},
		"no content":           {func(head, _ *corev1.ConfigMap) { head.BinaryData = nil }, []string{unrestored}},
		"a smaller number":     {func(head, _ *corev1.ConfigMap) { head.Annotations[partsAnnotation] = "1" }, []string{unrestored, "unexpected EOF"}},
		"a larger number":      {func(head, _ *corev1.ConfigMap) { head.Annotations[partsAnnotation] = "3" }, []string{unrestored, "does not exist"}},
		"a huge number":        {func(head, _ *corev1.ConfigMap) { head.Annotations[partsAnnotation] = "1000000" }, []string{ignored, "1000000"}},
		"no annotation":        {func(head, _ *corev1.ConfigMap) { head.Annotations = nil }, []string{ignored, hourAnnotation}},
		"another hour":         {func(head, _ *corev1.ConfigMap) { setHour(head, evening) }, []string{ignored, "another ConfigMap"}},
		"half an hour":         {func(head, _ *corev1.ConfigMap) { setHour(head, changed.Add(time.Hour/2)) }, []string{ignored, "beginning"}},
		"an older second":      {func(_, second *corev1.ConfigMap) { setHour(second, changed.Add(-rights.CopiedHours*time.Hour)) }, []string{unrestored, "has the hour"}},
		"both older": {func(head, second *corev1.ConfigMap) {
			setHour(head, changed.Add(-rights.CopiedHours*time.Hour))
			setHour(second, changed.Add(-rights.CopiedHours*time.Hour))
		}, []string{unrestored, "the content is the hour of"}},
		"the future": {func(head, _ *corev1.ConfigMap) { setHour(head, changed.Add(100*rights.CopiedHours*time.Hour)) }, []string{ignored, "last 35 days"}},
		"long ago":   {func(head, _ *corev1.ConfigMap) { setHour(head, changed.Add(-100*rights.CopiedHours*time.Hour)) }, []string{ignored, "last 35 days"}},
	} {
		w.deleteCopies()
		w.log.Reset()
		w.Logf("%s:", name)
		directory := w.TempDir()
		p := w.mustStart(directory)
		for n := range 2 {
			if err := p.writeHour(w.Context(), makeRecord(n, 40)); err != nil {
				w.Fatal(err)
			}
		}
		want := w.readFile(directory, makeHour(0))
		var parts [2]corev1.ConfigMap
		for i := range parts {
			key := client.ObjectKey{Namespace: v1alpha1.SystemNamespace, Name: rights.NameCopy(changed, i+1)}
			if err := w.Client.Get(w.Context(), key, &parts[i]); err != nil {
				w.Fatal(err)
			}
		}
		c.change(&parts[0], &parts[1])
		for i := range parts {
			if err := w.Client.Update(w.Context(), &parts[i]); err != nil {
				w.Fatal(err)
			}
		}
		w.expectRestored(map[int][]byte{0: want, 1: nil})
		w.expectLog(c.log...)

		directory = w.TempDir()
		if err := w.mustStart(directory).writeHour(w.Context(), makeRecord(1, 30)); err != nil {
			w.Fatal(err)
		}
		w.expectRestored(map[int][]byte{0: want, 1: w.readFile(directory, makeHour(1))})
	}
}

// testTwoLeaders expects that a former leader changes no ConfigMap.
func testTwoLeaders(w *world) {
	directory := w.TempDir()
	former := w.mustStart(directory)
	if err := former.WriteHour(makeRecord(0, 20)); err != nil {
		w.Fatal(err)
	}
	w.mustStart(directory)
	if err := former.Copy(w.Context(), makeHour(0).Until); !errors.Is(err, store.ErrFenced) {
		w.Errorf("a former leader: %v", err)
	}
	if n := w.countCopies(); n > 0 {
		w.Errorf("a former leader wrote %d ConfigMaps", n)
	}

	// A process with another volume has a later hour.
	later, late := w.mustStart(w.TempDir()), w.mustStart(w.TempDir())
	const n = rights.CopiedHours
	for _, p := range []process{later, late} {
		if err := p.WriteHour(makeRecord(0, 20)); err != nil {
			w.Fatal(err)
		}
	}
	if err := later.writeHour(w.Context(), makeRecord(n, 20)); err != nil {
		w.Fatal(err)
	}
	if err := late.Copy(w.Context(), makeHour(0).Until); err != nil {
		w.Error(err)
	}
	w.expectHour(makeHour(n).From)

	// It is written between the read and the write of another process.
	late = w.mustStart(w.TempDir())
	if err := late.WriteHour(makeRecord(2*n, 20)); err != nil {
		w.Fatal(err)
	}
	touched := 0
	late.Client = applyHookClient{late.Client, func() {
		touched++
		o := coreapply.ConfigMap(rights.NameCopy(evening, 1), v1alpha1.SystemNamespace).WithAnnotations(map[string]string{"touched": "yes"})
		if err := w.Client.Apply(w.Context(), o, client.FieldOwner("other")); err != nil {
			w.Fatal(err)
		}
	}}
	late.Clock = clocktesting.NewFakePassiveClock(makeHour(2 * n).Until)
	if err := late.Copy(w.Context(), makeHour(2*n).Until); err == nil || touched != 1 {
		w.Errorf("no conflict after %d writes of another process: %v", touched, err)
	}
	w.expectHour(makeHour(n).From)
	late.Client = w.ledger
	if err := late.Copy(w.Context(), makeHour(2*n).Until); err != nil {
		w.Error(err)
	}
	w.expectHour(makeHour(2 * n).From)
}

// applyHookClient acts before each apply.
type applyHookClient struct {
	client.Client
	act func()
}

func (m applyHookClient) Apply(ctx context.Context, o runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	m.act()
	return m.Client.Apply(ctx, o, opts...)
}

// expectHour expects an hour in the first ConfigMap of these tests.
func (w *world) expectHour(want time.Time) {
	w.Helper()
	var o corev1.ConfigMap
	if err := w.Client.Get(w.Context(), client.ObjectKey{Namespace: v1alpha1.SystemNamespace, Name: rights.NameCopy(evening, 1)}, &o); err != nil {
		w.Fatal(err)
	}
	if got := o.Annotations[hourAnnotation]; got != want.Format(time.RFC3339) {
		w.Errorf("the ConfigMap has the hour %s, want %s", got, want)
	}
}

// testRights expects that the ledger has no rights on other ConfigMaps, and cannot create or delete any with its own
// names by other verbs.
func testRights(w *world) {
	other := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.SystemNamespace, Name: install.LedgerName}}
	own := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.SystemNamespace, Name: rights.NameCopy(evening, 1)}}
	apply := func(namespace, name string) error {
		return w.ledger.Apply(w.Context(), coreapply.ConfigMap(name, namespace), client.FieldOwner("thief"))
	}
	for attempt, err := range map[string]error{
		"read another ConfigMap":            w.ledger.Get(w.Context(), client.ObjectKeyFromObject(other), &corev1.ConfigMap{}),
		"list ConfigMaps":                   w.ledger.List(w.Context(), &corev1.ConfigMapList{}, client.InNamespace(v1alpha1.SystemNamespace)),
		"apply another ConfigMap":           apply(v1alpha1.SystemNamespace, install.LedgerName),
		"apply the proxy's":                 apply(v1alpha1.SystemNamespace, "croft-proxy"),
		"apply its own in other namespaces": apply("default", own.Name),
		"create":                            w.ledger.Create(w.Context(), own.DeepCopy()),
		"delete":                            w.ledger.Delete(w.Context(), own.DeepCopy()),
	} {
		w.AssertRefused(attempt, err, "forbidden")
	}
	if err := apply(v1alpha1.SystemNamespace, own.Name); err != nil {
		w.Errorf("apply its own: %v", err)
	}
	if err := w.Client.Delete(w.Context(), own); err != nil {
		w.Error(err)
	}
	// Without its rights, as before an upgrade, the ledger starts and reports it.
	w.ledger = w.Impersonate("system:serviceaccount:default:nobody")
	w.mustStart(w.TempDir())
	w.expectLog("croft install", "forbidden")
}
