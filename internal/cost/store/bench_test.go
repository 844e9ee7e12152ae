package store

import (
	"fmt"
	"testing"
	"time"

	"croft.dev/croft/internal/cost/ledger"
	"croft.dev/croft/internal/cost/money"
)

// makeLargeHour returns the hour of 5,000 tenants with two namespaces each and three workloads in each of
// them. One in fifty workloads changes its cost in each hour.
func makeLargeHour(n int) Record {
	r := Record{Span: hourAt(n), Currency: "USD"}
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
			Weight: int64(i%8*9216+i%16*1000) * 3_600_000, Cost: cost, Idle: cost / 3})
	}
	return r
}

// BenchmarkDay merges and reads a day with 30,000 rows an hour, and reports the size of its files.
func BenchmarkDay(b *testing.B) {
	var hours []Record
	for n := range 24 {
		hours = append(hours, makeLargeHour(n))
	}
	for b.Loop() {
		start := time.Now()
		hourly, err := encode(hours)
		if err != nil {
			b.Fatal(err)
		}
		daily, err := encode(sumDay(ledger.Span{From: monday, Until: monday.Add(day)}, hours))
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(time.Since(start).Seconds(), "s/merge")
		start = time.Now()
		if _, err := decode(daily); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(time.Since(start).Milliseconds()), "ms/read-of-a-day")
		b.ReportMetric(float64(len(hourly))*35/1e6, "MB/35-days")
		b.ReportMetric(float64(len(daily))*396/1e6, "MB/13-months")
	}
}
