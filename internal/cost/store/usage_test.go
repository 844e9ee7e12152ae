package store

import (
	"fmt"
	"testing"

	"croft.dev/croft/internal/cost/ledger"
)

// TestPrecision expects usage to be rounded by 1.6 or 12.5 % at most, once, and in order.
func TestPrecision(t *testing.T) {
	for p, part := range map[precision]int64{finePrecision: 64, hourPrecision: 8} {
		last := int64(-1)
		for usage := int64(0); usage < 1<<50; usage += 1 + usage/500 {
			number := p.pack(usage)
			rounded := p.unpack(number)
			if off := max(rounded-usage, usage-rounded); off*part > usage {
				t.Fatalf("%d bits: %d is stored as %d", p, usage, rounded)
			}
			if again := p.pack(rounded); again != number || number < last {
				t.Fatalf("%d bits: %d is stored as number %d, %d again, and %d before it", p, usage, number, again, last)
			}
			last = number
		}
	}
}

// TestRoundedUsage compares constant usage with the usage in an hour, in the hours of a complete day and in its sum. The sum does
// not have the larger error of these hours, and no error grows with the number of rows in a total.
func TestRoundedUsage(t *testing.T) {
	s := openLeader(t, t.TempDir(), 1)
	var used int64 // in an hour
	for n := range 25 {
		h := Record{Span: makeHour(n), Currency: "USD"}
		used = 0
		for w := range int64(9) {
			row := ledger.Row{Key: ledger.Key{Kind: ledger.Tenant, Resource: ledger.NodeResource, Tenant: "shop", Namespace: "shop",
				Workload: fmt.Sprint("Deployment/", w)}, CPU: 36_000_000, Memory: 36_000_000_000, UsedCPU: 9_301 + 77*w, UsedMemory: 1000 * (9_301 + 77*w), Measured: 3600}
			used += row.UsedCPU
			h.Rows = append(h.Rows, row)
		}
		if err := s.WriteHour(h); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Maintain(makeHour(25).Until); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		first, hours int
		part         int64
	}{
		"an hour":          {24, 1, 64},
		"hours of a day":   {1, 23, 8},
		"the sum of a day": {0, 24, 32},
	} {
		for _, selection := range []Selection{{}, {Totals: true}} {
			figures, _ := sumSelected(t, s, ledger.Span{From: makeHour(c.first).From, Until: makeHour(c.first + c.hours - 1).Until}, selection)
			if len(figures) != 1 {
				t.Errorf("%s, %+v: %v", name, selection, figures)
			}
			for _, f := range figures {
				want := used * int64(c.hours)
				for _, got := range []int64{f[usedCPUValue], f[usedMemoryValue] / 1000} {
					if off := max(got-want, want-got); off*c.part > want {
						t.Errorf("%s, %+v: %d, want %d", name, selection, got, want)
					}
				}
			}
		}
	}
}
