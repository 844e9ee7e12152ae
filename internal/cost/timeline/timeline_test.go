package timeline

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"croft.dev/croft/internal/cost/ledger"
	"croft.dev/croft/internal/cost/price"
)

var podKey = Key{Pod, "a"}

// recordObject records an object that exists since second 100.
func recordObject(t *Timeline, key Key, facts Facts, now int64) { t.Observe(key, facts, 100, 0, now) }

// formatPhases formats phases as "name:from-until", with ~ if they are estimated.
func formatPhases(phases []Phase) string {
	var parts []string
	for _, p := range phases {
		part := fmt.Sprintf("%s%s:%d-%d", p.Name, p.Workload, p.From, p.Until)
		if p.Estimated {
			part = "~" + part
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, " ")
}

// TestPhases compares the phases of one object after some events.
func TestPhases(t *testing.T) {
	web, api := Facts{Workload: "web"}, Facts{Workload: "api"}
	launched, registered := Facts{Name: "claim"}, Facts{Name: "node", CPU: 2}
	node := Key{Node, "n"}
	for name, c := range map[string]struct {
		key    Key
		events func(*Timeline)
		want   string
	}{
		"exists":  {podKey, func(l *Timeline) { recordObject(l, podKey, web, 150) }, "web:100-0"},
		"changes": {podKey, func(l *Timeline) { recordObject(l, podKey, web, 150); recordObject(l, podKey, api, 160) }, "web:100-160 api:160-0"},
		"changes twice in a second": {podKey, func(l *Timeline) {
			recordObject(l, podKey, web, 150)
			recordObject(l, podKey, api, 160)
			recordObject(l, podKey, Facts{Workload: "db"}, 160)
		}, "web:100-160 db:160-0"},
		"ends": {podKey, func(l *Timeline) { recordObject(l, podKey, web, 150); l.End(podKey, 170); l.End(podKey, 180) }, "web:100-170"},
		"ends before it is observed": {podKey, func(l *Timeline) {
			l.Observe(podKey, web, 100, 102, 150)
			l.Observe(podKey, web, 100, 102, 160)
			l.End(podKey, 170)
		}, "web:100-102"},
		"a pod that ended is deleted": {podKey, func(l *Timeline) {
			recordObject(l, podKey, web, 101)
			l.Observe(podKey, web, 100, 102, 150)
			l.End(podKey, 170)
		}, "web:100-102"},
		"clocks differ":    {podKey, func(l *Timeline) { recordObject(l, podKey, web, 50); l.End(podKey, 60) }, "web:100-100"},
		"an end unseen":    {podKey, func(l *Timeline) { recordObject(l, podKey, web, 150); l.EndUnseen(podKey, 170) }, "~web:100-170"},
		"a node registers": {node, func(l *Timeline) { recordObject(l, node, launched, 100); recordObject(l, node, registered, 140) }, "node:100-0"},
		"a node object is deleted first": {node, func(l *Timeline) {
			recordObject(l, node, registered, 100)
			recordObject(l, node, launched, 140)
			l.End(node, 150)
		}, "node:100-140 claim:140-150"},
		"dropped": {node, func(l *Timeline) { recordObject(l, node, launched, 100); l.Drop(node) }, ""},
		"survives a gap": {podKey, func(l *Timeline) {
			recordObject(l, podKey, web, 150)
			l.See(200)
			l.Begin(300)
			recordObject(l, podKey, web, 301)
			l.Finish()
		}, "web:100-0"},
		"disappears in a gap": {podKey, func(l *Timeline) {
			recordObject(l, podKey, web, 150)
			l.See(200)
			l.Begin(300)
			l.Finish()
		}, "web:100-200 ~web:200-250"},
		"changes in a gap": {podKey, func(l *Timeline) {
			recordObject(l, podKey, web, 150)
			l.See(200)
			l.Begin(300)
			recordObject(l, podKey, api, 301)
			l.Finish()
		}, "web:100-200 ~web:200-250 ~api:250-300 api:300-0"},
		"begins in a gap": {podKey, func(l *Timeline) {
			l.See(200)
			l.Begin(300)
			l.Observe(podKey, web, 260, 0, 301)
			recordObject(l, podKey, api, 302)
			l.Finish()
		}, "web:260-302 api:302-0"},
		"forgotten": {podKey, func(l *Timeline) {
			recordObject(l, podKey, web, 150)
			recordObject(l, podKey, api, 160)
			l.Forget(160)
		}, "api:160-0"},
		"forgotten with its end": {podKey, func(l *Timeline) { recordObject(l, podKey, web, 150); l.End(podKey, 160); l.Forget(160) }, ""},
		"another price": {node, func(l *Timeline) {
			recordObject(l, node, registered, 100)
			l.Reprice("USD", func(Kind, Facts) price.Price { return price.Price{Amount: 1, Known: true} }, 130)
		}, "node:100-130 node:130-0"},
		"another currency": {node, func(l *Timeline) {
			recordObject(l, node, registered, 100)
			l.Reprice("USD", func(Kind, Facts) price.Price { return price.Price{Amount: 1, Known: true} }, 130)
			l.Reprice("EUR", func(Kind, Facts) price.Price { return price.Price{Amount: 2, Known: true} }, 150)
			if phases := l.phases[node]; phases[0].Price.Amount != 2 || phases[1].Price.Amount != 2 {
				panic("a phase has a price in the former currency")
			}
		}, "node:100-130 node:130-0"},
	} {
		l := New()
		c.events(l)
		if got := formatPhases(l.phases[c.key]); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestRestart restarts the process after random events. With the journal, it has the same phases as a
// process that continues.
func TestRestart(t *testing.T) {
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 2)) //nolint:gosec // a test repeats its numbers
		continued := New()
		journaled := New()
		var journal [][]byte
		for now := int64(100); now < 140; now++ {
			key := Key{[]Kind{Node, Pod, Owner}[r.IntN(3)], fmt.Sprint(r.IntN(3))}
			facts := Facts{Name: fmt.Sprint(r.IntN(2)), CPU: r.Int64N(2)}
			action, until := r.IntN(6), r.Int64N(2)*now
			for _, l := range []*Timeline{continued, journaled} {
				switch action {
				case 0:
					l.End(key, now)
				case 1:
					l.Drop(key)
				case 2:
					l.Forget(now - 10)
				default:
					l.Observe(key, facts, now-5, until, now)
				}
				l.See(now)
			}
			changes, err := journaled.Changes()
			if err != nil {
				t.Fatal(err)
			}
			journal = append(journal, changes...)
			if r.IntN(5) > 0 {
				continue
			}
			if journaled, err = Load(append(journal, changes...)); err != nil {
				t.Fatal(err)
			}
			if r.IntN(2) == 0 {
				if journal, err = journaled.Snapshot(); err != nil {
					t.Fatal(err)
				}
			}
		}
		if !maps.EqualFunc(continued.phases, journaled.phases, slices.Equal[[]Phase]) || continued.seen != journaled.seen {
			t.Fatalf("seed %d: %v, want %v", seed, journaled.phases, continued.phases)
		}
	}
}

// TestCutChanges cuts the changes of a flush. The time since the last complete flush is then in the gap, since some changes
// are missing.
func TestCutChanges(t *testing.T) {
	l := New()
	l.See(100)
	journal, err := l.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	recordObject(l, podKey, Facts{Workload: "web"}, 150)
	recordObject(l, Key{Node, "n"}, Facts{Name: "n"}, 150)
	l.See(150)
	changes, err := l.Changes()
	if err != nil {
		t.Fatal(err)
	}
	for n := range changes {
		after, err := Load(slices.Concat(journal, changes[:n]))
		if err != nil {
			t.Fatal(err)
		}
		if after.seen != 100 {
			t.Errorf("with %d of %d changes, the cluster was seen at %d", n, len(changes), after.seen)
		}
	}
	if after, err := Load(slices.Concat(journal, changes)); err != nil || after.seen != 150 {
		t.Errorf("with all changes, the cluster was seen at %d: %v", after.seen, err)
	}
}

func formatSpan(s ledger.Span) string {
	if s.Until.IsZero() {
		return fmt.Sprintf("%d-", s.From.Unix())
	}
	return fmt.Sprintf("%d-%d", s.From.Unix(), s.Until.Unix())
}

// TestBuild covers objects whose ends overlap, and gaps.
func TestBuild(t *testing.T) {
	l := New()
	l.See(200)
	l.Begin(300)
	l.Observe(Key{Node, "old"}, Facts{Name: "n", CPU: 1}, 100, 0, 300)
	l.Observe(Key{Node, "new"}, Facts{Name: "n", CPU: 1}, 400, 0, 410)
	l.Observe(Key{Owner, "old"}, Facts{Namespace: "shop", Tenant: "shop"}, 100, 0, 300)
	l.Observe(Key{Owner, "new"}, Facts{Namespace: "shop", Tenant: "bank"}, 400, 0, 410)
	l.Observe(Key{Pod, "early"}, Facts{Node: "n"}, 90, 0, 300)
	l.Observe(Key{Node, "gone"}, Facts{Name: "gone", CPU: 1}, 310, 0, 310)
	l.Observe(Key{Pod, "late"}, Facts{Node: "gone", Workload: "late"}, 320, 0, 320)
	l.Observe(Key{Pod, "lost"}, Facts{Node: "unknown"}, 320, 0, 320)
	l.Finish()
	l.End(Key{Node, "gone"}, 350)
	l.End(Key{Pod, "late"}, 380)
	l.End(Key{Node, "old"}, 420)
	in := l.Build()
	var got []string
	for _, n := range in.Nodes {
		got = append(got, fmt.Sprint(n.Name, " ", formatSpan(n.Span), " ", max(n.Observed.Unix(), 0)))
	}
	for _, p := range in.Pods {
		got = append(got, fmt.Sprint("pod on ", p.Node, " ", formatSpan(p.Span)))
	}
	for _, o := range in.Owners {
		got = append(got, fmt.Sprint(o.Tenant, " ", formatSpan(o.Span)))
	}
	slices.Sort(got)
	want := []string{"bank 400-", "gone 310-350 0", "n 100-200 0", "n 200-300 300", "n 300-400 0", "n 400- 0",
		"pod on gone 320-350", "pod on n 100-", "pod on unknown 320-", "shop 100-400"}
	if !slices.Equal(got, want) {
		t.Errorf("%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if _, err := ledger.New(in); err != nil {
		t.Error(err)
	}
	period := ledger.Span{From: time.Unix(250, 0), Until: time.Unix(500, 0)}
	if gaps := l.ListGaps(period); len(gaps) != 1 || formatSpan(gaps[0]) != "250-300" {
		t.Errorf("gaps: %v", gaps)
	}
	if got := l.ListTenants(); !reflect.DeepEqual(got, map[string]string{"shop": "bank"}) {
		t.Logf("both namespaces exist: %v", got)
	}
}

// TestBuildNeverOverlaps expects that the ledger accepts any sequence of events.
func TestBuildNeverOverlaps(t *testing.T) {
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 3)) //nolint:gosec // a test repeats its numbers
		l := New()
		for now := int64(100); now < 130; now++ {
			key := Key{[]Kind{Node, Owner}[r.IntN(2)], fmt.Sprint(r.IntN(4))}
			facts := Facts{Name: fmt.Sprint(r.IntN(2)), Namespace: fmt.Sprint(r.IntN(2)), CPU: r.Int64N(2)}
			switch r.IntN(8) {
			case 0:
				l.End(key, now)
			case 1:
				l.EndUnseen(key, now)
			case 2:
				l.See(now - r.Int64N(5))
				l.Begin(now)
				l.Observe(key, facts, now-r.Int64N(20), 0, now)
				l.Finish()
			default:
				l.Observe(key, facts, now-r.Int64N(20), r.Int64N(2)*now, now)
			}
		}
		if _, err := ledger.New(l.Build()); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

// TestListExclusive expects a pool only if it was exclusive in the whole period.
func TestListExclusive(t *testing.T) {
	l := New()
	l.Observe(Key{Pool, "apps"}, Facts{Pool: "apps", Tenant: "shop"}, 100, 0, 100)
	l.End(Key{Pool, "apps"}, 200)
	l.Observe(Key{Pool, "apps"}, Facts{Pool: "apps", Tenant: "bank"}, 300, 0, 300)
	for period, want := range map[[2]int64]string{{90, 150}: "", {100, 200}: "shop", {150, 201}: "", {250, 350}: "", {300, 900}: "bank"} {
		span := ledger.Span{From: time.Unix(period[0], 0), Until: time.Unix(period[1], 0)}
		if got := l.ListExclusive(span)["apps"]; got != want {
			t.Errorf("%v: %q, want %q", period, got, want)
		}
	}
	if pools := l.ListPools(); !slices.Equal(pools, []string{"apps"}) {
		t.Errorf("pools: %v", pools)
	}
}
