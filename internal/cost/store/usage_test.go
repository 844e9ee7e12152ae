package store

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"croft.dev/croft/internal/cost/ledger"
)

// TestPackUsage expects usage to be rounded by 1.6 % at most, once, and in order.
func TestPackUsage(t *testing.T) {
	last := int64(-1)
	for usage := int64(0); usage < 1<<50; usage += 1 + usage/500 {
		number := packUsage(usage)
		rounded := unpackUsage(number)
		if off := max(rounded-usage, usage-rounded); off*64 > usage {
			t.Fatalf("%d is stored as %d", usage, rounded)
		}
		if again := packUsage(rounded); again != number || number < last {
			t.Fatalf("%d is stored as number %d, %d again, and %d before it", usage, number, again, last)
		}
		last = number
	}
}

// TestRoundedTotals expects that totals are the exact sums of the rounded rows.
func TestRoundedTotals(t *testing.T) {
	s := openLeader(t, t.TempDir(), 1)
	for n := range 25 {
		h := Record{Span: makeHour(n), Currency: "USD"}
		for w := range int64(9) {
			h.Rows = append(h.Rows, ledger.Row{Key: ledger.Key{Kind: ledger.Tenant, Resource: ledger.NodeResource, Tenant: "shop", Namespace: "shop",
				Workload: fmt.Sprint("Deployment/", w)}, CPU: 1, UsedCPU: 10_001 + 77*w, UsedMemory: 1 << 30 / (w + 3), Measured: 3600})
		}
		if err := s.WriteHour(h); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Maintain(makeHour(25).Until); err != nil {
		t.Fatal(err)
	}
	whole := ledger.Span{From: monday, Until: makeHour(24).Until}
	var sums [2][2]int64
	for i, selection := range []Selection{{}, {Totals: true}} {
		figures, _ := sumSelected(t, s, whole, selection)
		for _, f := range figures {
			sums[i][0] += f[usedCPUValue]
			sums[i][1] += f[usedMemoryValue]
		}
	}
	if sums[0] != sums[1] || sums[0][0] == 0 {
		t.Errorf("rows have %v, and totals %v", sums[0], sums[1])
	}
}

// sumByKind returns the cost, the requests and the usage of the rows of a selection, by their kinds.
func sumByKind(t *testing.T, s *Store, period ledger.Span, selection Selection) []string {
	t.Helper()
	r, err := s.Select(period, selection)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	byKind := func(row *ledger.Row) ledger.Key { return ledger.Key{Kind: row.Kind, Resource: row.Resource} }
	var rows []ledger.Row
	if err := r.EachRow(func(_ int, row *ledger.Row) error { rows = append(rows, *row); return nil }); err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, row := range sumRows(byKind, rows) {
		lines = append(lines, fmt.Sprintf("%s %s: %d %d %d, used %d in %d, unknown in %d", row.Kind, row.Resource, row.Cost, row.CPU, row.Weight, row.UsedCPU,
			row.Measured, row.Unmeasured))
	}
	return lines
}

// TestWithoutUsage reads files that croft wrote before it recorded usage, of two hours of Monday and two of Tuesday. Usage is
// unknown in them, also after a merge with an hour that has usage, and all other figures stay.
func TestWithoutUsage(t *testing.T) {
	directory := t.TempDir()
	if err := os.CopyFS(directory, os.DirFS("testdata/without-usage")); err != nil {
		t.Fatal(err)
	}
	s := openLeader(t, directory, 2)
	tuesday := monday.Add(day)
	expect := func(from time.Time, want ...string) {
		t.Helper()
		for _, selection := range []Selection{{}, {Totals: true}} {
			if got := sumByKind(t, s, ledger.Span{From: from, Until: from.Add(day)}, selection); !slices.Equal(got, want) {
				t.Errorf("%s, %+v:\n%s\nwant\n%s", from, selection, strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		}
	}
	idle, volume := "idle node: 72000 0 200, used 0 in 0, unknown in 0", "tenant volume: 24 0 7200, used 0 in 0, unknown in 0"
	// A sum of a day counts each row as one pod in the whole day.
	expect(monday, idle, "platform node: 20000 720000 6635520000, used 0 in 0, unknown in 86400",
		"tenant node: 100000 3600000 2, used 0 in 0, unknown in 86400", volume)
	platform := "platform node: 20000 720000 6635520000, used 0 in 0, unknown in 7200"
	expect(tuesday, idle, platform, "tenant node: 100000 3600000 2, used 0 in 0, unknown in 7200", volume)
	web := ledger.Row{Key: ledger.Key{Kind: ledger.Tenant, Resource: ledger.NodeResource, Pool: "apps", CapacityType: "spot", InstanceType: "m5.large",
		Tenant: "shop", CostCode: "org1", Namespace: "shop-prod", Workload: "Deployment/web", PriceSource: "prices.yaml"}, CPU: 1, UsedCPU: 32, Measured: 3600}
	if err := s.WriteHour(Record{Span: makeHour(26), Currency: "EUR", Rows: []ledger.Row{web}}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		expect(tuesday, idle, platform, "tenant node: 100000 3600001 2, used 32 in 3600, unknown in 7200", volume)
		if err := s.Maintain(tuesday.Add(day)); err != nil {
			t.Fatal(err)
		}
	}
}
