package report

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"croft.dev/croft/internal/cost/ledger"
	"croft.dev/croft/internal/cost/money"
	"croft.dev/croft/internal/cost/store"
)

// makeHourRows returns random rows of an hour, some without a price or without requests.
func makeHourRows(r *rand.Rand) []ledger.Row {
	var rows []ledger.Row
	add := func(row ledger.Row) {
		row.Cost, row.Idle, row.EstimatedCost = money.Amount(r.Int64N(1e9)), money.Amount(r.Int64N(1e6)), money.Amount(r.Int64N(3))
		if r.IntN(20) == 0 {
			row.Cost, row.Unpriced, row.PriceSource = 0, 3600, ""
		}
		rows = append(rows, row)
	}
	for i := range 40 {
		tenant := fmt.Sprintf("t-%d", i/8)
		row := ledger.Row{Key: ledger.Key{Kind: ledger.Tenant, Resource: ledger.NodeResource, Pool: fmt.Sprintf("pool-%d", i/4%3), CapacityType: "spot",
			InstanceType: fmt.Sprintf("m%d.large", i%2), Tenant: tenant, CostCode: fmt.Sprintf("org-%d", i/4%2), Namespace: fmt.Sprintf("%s-%d", tenant, i/4%2),
			Workload: fmt.Sprintf("Deployment/%d", i), PriceSource: fmt.Sprintf("list %d", i%3)}, CPU: 3_600_000, Memory: r.Int64N(3_600_000),
			Measured: r.Int64N(3600), Unmeasured: r.Int64N(2)}
		switch r.IntN(10) {
		case 0:
			row.CPU, row.Memory = 0, 0
		case 1:
			row.Kind, row.Tenant, row.Namespace = ledger.Platform, "", "kube-system"
		case 2:
			row.Resource, row.Pool, row.CPU, row.Memory = ledger.VolumeResource, "", 0, 0
		case 3:
			continue
		}
		add(row)
	}
	for _, kind := range []ledger.Kind{ledger.Idle, ledger.Unallocated} {
		add(ledger.Row{Key: ledger.Key{Kind: kind, Resource: ledger.NodeResource, Pool: "pool-1", InstanceType: "m1.large"}})
	}
	return rows
}

// TestTotals expects the same reports and months from totals as from all rows, to the unit and by bytes, in each grouping that
// UsesTotals allows, and other reports in the others. No row has usage, which is rounded in both.
func TestTotals(t *testing.T) {
	first := time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC)
	differ := map[string]bool{}
	for seed := range uint64(10) {
		r := rand.New(rand.NewPCG(seed, 9)) //nolint:gosec // a test repeats its numbers
		s, err := store.Open(t.TempDir(), func(file string, err error) { t.Errorf("%s: %v", file, err) })
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Lead(store.Leader{Identity: "test"}); err != nil {
			t.Fatal(err)
		}
		until := first
		for ; until.Before(first.Add(53 * time.Hour)); until = until.Add(time.Hour) {
			record := store.Record{Span: ledger.Span{From: until, Until: until.Add(time.Hour)}, Currency: "USD", Rows: makeHourRows(r)}
			if r.IntN(20) == 0 {
				record.Currency = "EUR"
			}
			if err := s.WriteHour(record); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Maintain(until); err != nil {
			t.Fatal(err)
		}
		for _, from := range []time.Time{first, first.Add(5 * time.Hour)} {
			for _, by := range Groupings() {
				all := formatStored(t, s, ledger.Span{From: from, Until: until}, by, store.Selection{})
				totals := formatStored(t, s, ledger.Span{From: from, Until: until}, by, store.Selection{Totals: true})
				if all == totals {
					continue
				}
				differ[by] = true
				if UsesTotals(by) {
					t.Fatalf("seed %d, by %s:\n%s\nwant\n%s", seed, by, totals, all)
				}
			}
		}
	}
	for _, by := range Groupings() {
		if !UsesTotals(by) && !differ[by] {
			t.Errorf("%s: the totals suffice", by)
		}
	}
}

// formatStored returns the report and the history of a selection.
func formatStored(t *testing.T, s *store.Store, period ledger.Span, by string, selection store.Selection) string {
	t.Helper()
	records, err := s.Select(period, selection)
	if err != nil {
		t.Fatal(err)
	}
	defer records.Close()
	in := Stored{From: period.From, Now: period.Until, Records: records.Records, EachRow: records.EachRow, Next: store.Record{Currency: "USD"}}
	costs, err := BuildStored(in, by)
	if err != nil {
		t.Fatal(err)
	}
	history, err := BuildHistory(in, by)
	if err != nil {
		t.Fatal(err)
	}
	if len(costs.Lines) < 2 || costs.Total.Total == 0 || history.Forecast == nil {
		t.Fatalf("by %s: %+v", by, costs)
	}
	text, err := json.MarshalIndent([]any{costs, history}, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
