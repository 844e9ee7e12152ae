package report

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"croft.dev/croft/internal/cost/ledger"
	"croft.dev/croft/internal/cost/money"
	"croft.dev/croft/internal/cost/store"
)

// TestHistory compares months, days and lines with the sums by hand: a day costs 24, and 48 in October.
func TestHistory(t *testing.T) {
	now := time.Date(2026, 11, 10, 6, 0, 0, 0, time.UTC)
	in := Stored{From: now.AddDate(0, -1, -20), Now: now, Next: store.Record{Currency: "USD"}}
	records := store.NewReading(nil)
	add := func(from time.Time, length time.Duration, currency, tenant string, cost money.Amount, unpriced int64) {
		records.Add(store.Record{Span: ledger.Span{From: from, Until: from.Add(length)}, Currency: currency, Rows: []ledger.Row{
			{Key: ledger.Key{Kind: ledger.Tenant, Tenant: tenant, Resource: ledger.NodeResource}, Cost: cost, Unpriced: unpriced},
		}})
	}
	// The records of days, and then of hours.
	for day := time.Date(2026, 9, 30, 0, 0, 0, 0, time.UTC); day.Month() < 11; day = day.Add(oneDay) {
		add(day, oneDay, "USD", "bank", 48*money.Unit, 0)
	}
	for hour := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC); hour.Before(now); hour = hour.Add(time.Hour) {
		add(hour, time.Hour, "USD", "shop", money.Unit, 0)
	}
	add(now.Add(-time.Hour), time.Hour, "EUR", "shop", money.Unit, 0)
	add(now.Add(-time.Hour), time.Hour, "USD", "shop", 0, 60)
	in.Records, in.EachRow = records.Records, records.EachRow
	h, err := BuildHistory(in, ByTenant)
	if err != nil {
		t.Fatal(err)
	}
	var months []string
	for _, m := range h.Months {
		months = append(months, fmt.Sprint(m.From.Format(time.DateOnly), " ", m.Until.Format(time.DateOnly), " ", m.Total, " ", m.Unknown))
	}
	// 9 days and 6 hours.
	if want := []string{"2026-09-01 2026-10-01 48.000000 false", "2026-10-01 2026-11-01 1488.000000 false", "2026-11-01 2026-12-01 222.000000 true"}; !slices.Equal(months, want) {
		t.Errorf("months %q, want %q", months, want)
	}
	first, last := h.Days[0], h.Days[len(h.Days)-1]
	if len(h.Days) != historyDays || first.From.Format(time.DateOnly) != "2026-10-11" || first.Total != 48*money.Unit || last.Total != 6*money.Unit {
		t.Errorf("%d days from %+v to %+v", len(h.Days), first, last)
	}
	if len(h.ThisMonth) != 1 || h.ThisMonth[0].Name != "shop" || len(h.LastMonth) != 1 || h.LastMonth[0].Name != "bank" || h.LastMonth[0].Total != 1488*money.Unit {
		t.Errorf("lines %+v and %+v", h.ThisMonth, h.LastMonth)
	}
	// 20.75 days remain.
	if h.Forecast == nil || h.Forecast.Total.Month != 720*money.Unit || len(h.Limits) == 0 || len(h.MissingPrices) != 1 {
		t.Errorf("forecast %+v, limits %q, missing prices %q", h.Forecast, h.Limits, h.MissingPrices)
	}
	if h, err := BuildHistory(Stored{From: now, Now: now}, ByTenant); err != nil || h.Forecast != nil || len(h.Months) > 0 {
		t.Errorf("a history without records: %+v %v", h, err)
	}
}
