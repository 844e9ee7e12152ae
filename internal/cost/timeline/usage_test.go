package timeline

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"croft.dev/croft/internal/cost/ledger"
)

func formatAllUsage(all []ledger.Usage) string {
	var parts []string
	for _, u := range all {
		parts = append(parts, fmt.Sprintf("%d-%d: %d %d", u.From, u.Until, u.CPU, u.Memory))
	}
	return strings.Join(parts, ", ")
}

// TestMeasure compares the usage of a pod that exists since second 100.
func TestMeasure(t *testing.T) {
	const hour = 3600
	for name, c := range map[string]struct {
		events func(*Timeline)
		want   string
	}{
		"since the pod's beginning": {func(l *Timeline) { l.Measure("a", 5, 2, 150) }, "100-150: 250 100"},
		"for three minutes at most": {func(l *Timeline) { l.Measure("a", 5, 2, 1000) }, "820-1000: 900 360"},
		"continued":                 {func(l *Timeline) { l.Measure("a", 5, 2, 150); l.Measure("a", 1, 1, 160) }, "100-160: 260 110"},
		"twice in a second":         {func(l *Timeline) { l.Measure("a", 5, 2, 150); l.Measure("a", 1, 1, 150) }, "100-150: 250 100"},
		"with an earlier clock":     {func(l *Timeline) { l.Measure("a", 5, 2, 150); l.Measure("a", 1, 1, 140) }, "100-150: 250 100"},
		"after a pause":             {func(l *Timeline) { l.Measure("a", 5, 2, 150); l.Measure("a", 1, 1, 500) }, "100-150: 250 100, 320-500: 180 180"},
		"in two hours":              {func(l *Timeline) { l.Measure("a", 2, 1, hour+60) }, "3480-3600: 240 120, 3600-3660: 120 60"},
		"at the end of an hour": {func(l *Timeline) { l.Measure("a", 2, 1, hour); l.Measure("a", 2, 1, hour+60) },
			"3420-3600: 360 180, 3600-3660: 120 60"},
		"forgotten":      {func(l *Timeline) { l.Measure("a", 2, 1, hour+60); l.Forget(hour) }, "3600-3660: 120 60"},
		"after its end":  {func(l *Timeline) { l.End(podKey, 150); l.Measure("a", 5, 2, 160) }, ""},
		"of another pod": {func(l *Timeline) { l.Measure("b", 5, 2, 160) }, ""},
		"after a change": {func(l *Timeline) {
			l.Measure("a", 5, 2, 150)
			recordObject(l, podKey, Facts{Workload: "api"}, 160)
			l.Measure("a", 5, 2, 170)
		}, "100-170: 350 140"},
	} {
		l := New()
		recordObject(l, podKey, Facts{Workload: "web"}, 100)
		c.events(l)
		if got := formatAllUsage(l.usage["a"]); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
		for _, p := range l.Build().Pods {
			if got := formatAllUsage(p.Usage); got != c.want {
				t.Errorf("%s: the ledger gets %q, want %q", name, got, c.want)
			}
		}
	}
}

// TestUsageSurvives kills a process at each second of an hour in which it measures each minute. The next one has all usage until
// five minutes before, without a time that counts twice, also with a journal whose entries are applied twice.
func TestUsageSurvives(t *testing.T) {
	l := New()
	journal, err := l.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	recordObject(l, podKey, Facts{Workload: "web"}, 100)
	written := 0
	for now := int64(100); now < 3700; now++ {
		if now%60 == 0 {
			l.Measure("a", 5, 2, now)
		}
		l.See(now)
		changes, err := l.Changes()
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range changes {
			if strings.Contains(string(c), `"usage"`) {
				written++
			}
		}
		journal = append(journal, changes...)
		if now%7 != 0 {
			continue // 7 and 60 have no common divisor, so kills come in all seconds of a minute
		}
		after, err := Load(append(journal, changes...))
		if err != nil {
			t.Fatal(err)
		}
		after.Measure("a", 5, 2, now+1)
		until := int64(0)
		for _, u := range after.usage["a"] {
			if u.From < max(until, 100) || u.CPU != 5*(u.Until-u.From) {
				t.Fatalf("after a kill at %d: %s", now, formatAllUsage(after.usage["a"]))
			}
			until = u.Until
		}
		var known int64
		for _, u := range after.usage["a"] {
			known += u.Until - u.From
		}
		if lost := now + 1 - 100 - known; lost > usageInterval+60-longestMeasure {
			t.Fatalf("after a kill at %d, the usage of %d s is lost: %s", now, lost, formatAllUsage(after.usage["a"]))
		}
	}
	if want := 3600 / usageInterval; written > want+1 {
		t.Errorf("usage was written %d times, want %d", written, want)
	}
	journal, err = l.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	if after, err := Load(journal); err != nil || !maps.EqualFunc(after.usage, l.usage, slices.Equal[[]ledger.Usage]) || len(l.usage) != 1 {
		t.Errorf("%v: %v, want %v", err, after.usage, l.usage)
	}
}
