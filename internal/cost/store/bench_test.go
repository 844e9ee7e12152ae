package store

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"croft.dev/croft/internal/cost/ledger"
	"croft.dev/croft/internal/cost/money"
)

// makeLargeHour returns the hour of 5,000 tenants with two namespaces each and three workloads in each of
// them. One in fifty workloads changes its cost in each hour.
func makeLargeHour(n int) Record {
	r := Record{Span: makeHour(n), Currency: "USD"}
	random := rand.New(rand.NewPCG(uint64(n), 39)) //nolint:gosec // a benchmark repeats its numbers
	for i := range 30_000 {
		cost := money.Amount(20_000 + i%997)
		if i%50 == n%50 {
			cost += money.Amount(n * 13)
		}
		tenant := fmt.Sprintf("team-%04d", i/6)
		r.Rows = append(r.Rows, ledger.Row{Key: ledger.Key{Kind: ledger.Tenant, Resource: ledger.NodeResource,
			Pool: fmt.Sprintf("pool-%02d", i%40), CapacityType: "spot", InstanceType: "m5.2xlarge", Tenant: tenant,
			CostCode: fmt.Sprintf("org-%03d", i%300), Namespace: fmt.Sprintf("%s-%d", tenant, i/3%2),
			Workload: fmt.Sprintf("Deployment/service-%d", i%3), PriceSource: "prices.yaml"},
			CPU: int64(i%8) * 3_600_000, Memory: int64(i%16) * 3_600_000,
			Weight: int64(i%8*9216+i%16*1000) * 3_600_000, Cost: cost, Idle: cost / 3,
			// A tenth of the requests, which varies by a fifth.
			UsedCPU: int64(i%8) * (300 + random.Int64N(120)), UsedMemory: int64(i%16) * (300 + random.Int64N(120)), Measured: 3600})
	}
	return r
}

// openLarge returns a store with the hours of a day with 30,000 rows an hour.
func openLarge(b *testing.B) *Store {
	b.Helper()
	s, err := Open(b.TempDir(), func(file string, err error) { b.Errorf("%s: %v", file, err) })
	if err != nil {
		b.Fatal(err)
	}
	if err := s.Lead(Leader{Identity: "bench"}); err != nil {
		b.Fatal(err)
	}
	for n := range 24 {
		if err := s.WriteHour(makeLargeHour(n)); err != nil {
			b.Fatal(err)
		}
	}
	return s
}

// BenchmarkMerge merges a day, and reports the size of its files.
func BenchmarkMerge(b *testing.B) {
	s := openLarge(b)
	of := ledger.Span{From: monday, Until: monday.Add(day)}
	files, err := s.listFiles(hoursDir, of)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		r := &Reading{}
		if err := s.addHours(r, files, of, Selection{}); err != nil {
			b.Fatal(err)
		}
		sums, hours, err := mergeHours(of, r)
		r.Close()
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(len(hours))*35/1e6, "MB/35-days")
		b.ReportMetric(float64(len(sums))*396/1e6, "MB/13-months")
	}
}

// BenchmarkSelect reads the sum and the hours of a day, and the hours of a day that is not complete. An answer about 30
// days reads 29 sums, and 24 hours of two days.
func BenchmarkSelect(b *testing.B) {
	merged, hours := openLarge(b), openLarge(b)
	if err := merged.Maintain(monday.Add(day)); err != nil {
		b.Fatal(err)
	}
	tenant := "team-2500"
	for _, of := range []struct {
		name   string
		store  *Store
		period ledger.Span
	}{
		{"sum", merged, ledger.Span{From: monday, Until: monday.Add(day)}},
		{"hours", merged, ledger.Span{From: monday.Add(time.Hour), Until: monday.Add(day)}},
		{"files-of-hours", hours, ledger.Span{From: monday, Until: monday.Add(day)}},
	} {
		for name, selection := range map[string]Selection{"tenant": {Tenant: &tenant}, "totals": {Totals: true}, "rows": {}} {
			b.Run(of.name+"/"+name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					r, err := of.store.Select(of.period, selection)
					if err != nil {
						b.Fatal(err)
					}
					rows := 0
					err = r.EachRow(func(int, *ledger.Row) error { rows++; return nil })
					r.Close()
					if err != nil || rows == 0 {
						b.Fatal(rows, err)
					}
				}
			})
		}
	}
}
