package ledger

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// makeUsage returns the usage of a pod in a part of the hour, in seconds: CPU in thousandths, and memory in MiB.
func makeUsage(from, until, cpu, memory int64) Usage {
	at := start.Unix()
	return Usage{From: at + from, Until: at + until, CPU: cpu * 1000 * (until - from), Memory: memory * (until - from)}
}

// TestUsage compares the usage of an hour with sums by hand. Usage that was not measured is no zero, and changes no cost.
func TestUsage(t *testing.T) {
	owners := []Owner{{Namespace: "shop", Tenant: "shop", Span: Span{Until: start.Add(900 * time.Second)}},
		{Namespace: "shop", Tenant: "bank", Span: Span{From: start.Add(900 * time.Second)}}}
	pod := Pod{Namespace: "shop", Workload: "web", Node: "a", CPU: 1000, Memory: 9 << 10, Span: Span{From: start}}
	for name, c := range map[string]struct {
		usage []Usage
		until int
		want  []string
	}{
		"unknown":  {nil, 3600, []string{"bank: 0 0 in 0, 2700 unknown", "shop: 0 0 in 0, 900 unknown"}},
		"zero":     {[]Usage{makeUsage(0, 3600, 0, 0)}, 3600, []string{"bank: 0 0 in 2700, 0 unknown", "shop: 0 0 in 900, 0 unknown"}},
		"constant": {[]Usage{makeUsage(0, 3600, 500, 2048)}, 3600, []string{"bank: 1350 5400 in 2700, 0 unknown", "shop: 450 1800 in 900, 0 unknown"}},
		"with a hole": {[]Usage{makeUsage(0, 600, 500, 2048), makeUsage(1200, 1500, 1500, 1024)}, 3600,
			[]string{"bank: 450 300 in 300, 2400 unknown", "shop: 300 1200 in 600, 300 unknown"}},
		"longer than the pod": {[]Usage{makeUsage(-600, 1800, 500, 1024)}, 1000, []string{"bank: 50 100 in 100, 0 unknown", "shop: 450 900 in 900, 0 unknown"}},
		"rounded":             {[]Usage{makeUsage(0, 900, 1, 1)}, 3600, []string{"bank: 0 0 in 0, 2700 unknown", "shop: 1 1 in 900, 0 unknown"}},
	} {
		pod.Usage, pod.Until = c.usage, start.Add(time.Duration(c.until)*time.Second)
		in := Input{Nodes: []Node{makeNode("a", "apps", whole)}, Pods: []Pod{pod}, Owners: owners}
		l, err := New(in)
		if err != nil {
			t.Fatal(err)
		}
		hour := l.Compute(whole)
		var got []string
		for _, r := range hour.Rows {
			if line := fmt.Sprintf("%s: %d %d in %d, %d unknown", r.Tenant, r.UsedCPU, r.UsedMemory, r.Measured, r.Unmeasured); r.Kind == Tenant {
				got = append(got, line)
			} else if line != ": 0 0 in 0, 0 unknown" {
				t.Errorf("%s: idle capacity has usage: %s", name, line)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s:\n%s\nwant\n%s", name, strings.Join(got, "\n"), strings.Join(c.want, "\n"))
		}
		in.Pods[0].Usage = nil
		if l, err = New(in); err != nil {
			t.Fatal(err)
		}
		if with, without := formatRows(hour), formatRows(l.Compute(whole)); !slices.Equal(with, without) {
			t.Errorf("%s: usage changes the cost: %q, want %q", name, with, without)
		}
	}
}
