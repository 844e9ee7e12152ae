package report

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"croft.dev/croft/internal/cost/ledger"
	"croft.dev/croft/internal/cost/money"
)

// TestForecast compares forecasts with the sums by hand.
func TestForecast(t *testing.T) {
	now := time.Date(2026, 11, 10, 6, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		// days is the age of the first day with a cost.
		days int
		by   string
		want []string
		base int
	}{
		// 9 days and 6 hours so far; then 20.75 days of 24.
		"a week":          {30, ByTenant, []string{"shop 222.000000 24.000000 720.000000", "(idle) 9.000000 1.000000 29.750000", "total 231.000000 25.000000 749.750000"}, 7},
		"fewer days":      {3, ByTenant, []string{"shop 78.000000 24.000000 576.000000", "(idle) 3.000000 1.000000 23.750000", "total 81.000000 25.000000 599.750000"}, 3},
		"idle, by a pool": {3, ByPool, []string{"apps 81.000000 25.000000 599.750000", "total 81.000000 25.000000 599.750000"}, 3},
	} {
		f := NewForecaster(c.by, now)
		for at := now.Truncate(oneDay).AddDate(0, 0, -c.days); at.Before(now.Add(3 * time.Hour)); at = at.Add(time.Hour) {
			add := func(kind ledger.Kind, tenant string, cost, idle money.Amount) {
				if err := f.Add(&Charge{From: at, Until: at.Add(time.Hour), Row: ledger.Row{Key: ledger.Key{Kind: kind, Tenant: tenant,
					Resource: ledger.NodeResource, Pool: "apps"}, Cost: cost, Idle: idle}}); err != nil {
					t.Fatal(err)
				}
			}
			// A day costs 24, wherever its hours are more expensive.
			add(ledger.Tenant, "shop", money.Unit, 0)
			if at.Hour() == 12 {
				add(ledger.Idle, "", money.Unit, money.Unit)
			}
		}
		r, err := f.Finish("USD", []string{"a limit"})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, line := range append(r.Lines, r.Total) {
			got = append(got, fmt.Sprintf("%s %s %s %s", line.Name, line.SoFar, line.PerDay, line.Month))
		}
		if !slices.Equal(got, c.want) || r.BaseUntil.Sub(r.BaseFrom) != time.Duration(c.base)*oneDay || len(r.Limits) != 1 {
			t.Errorf("%s: %q from %s, want %q", name, got, r.BaseFrom, c.want)
		}
	}
}

// TestNoForecast expects no forecast without a complete day.
func TestNoForecast(t *testing.T) {
	now := time.Date(2026, 11, 10, 6, 0, 0, 0, time.UTC)
	f := NewForecaster(ByTenant, now)
	if _, err := f.Finish("USD", nil); err == nil {
		t.Error("a forecast without any cost")
	}
	if err := f.Add(&Charge{From: now.Add(-10 * time.Hour), Until: now.Add(-9 * time.Hour)}); err != nil {
		t.Fatal(err)
	}
	if r, err := f.Finish("USD", nil); err == nil {
		t.Errorf("a forecast of less than a day: %+v", r)
	}
}
