package page_test

import (
	"strings"
	"testing"

	"croft.dev/croft/internal/cost/money"
	"croft.dev/croft/internal/cost/report"
	"croft.dev/croft/internal/dashboard/page"
)

// TestCost compares the texts of the costs, and expects no bar outside of the chart.
func TestCost(t *testing.T) {
	for name, c := range map[string]struct {
		page  page.Page
		parts []string
		lacks string
	}{
		"a tenant": {page.NewCost(page.Scope{Namespace: "shop", Tenant: "shop"}, makeHistory("USD")), []string{
			"Cost of tenant shop", "In USD, by calendar months in UTC. The expected cost continues the mean of the 7 complete days from 2026-11-19.",
			"2026-11 250.00 + ? so far, 330.00 expected +10 % expected", "2026-10 300.00 -", "Cost of the months",
			"This month by workload", "USD 200.00 + ? 50.00 ~250.00 + ? 330.00 300.00", "b 0.00 - 0.00 - -", "no price, and no cost: USD",
			"croft cost --ledger URL --since 30d --by workload -n shop",
		}, ""},
		"no charges":       {page.NewCost(page.Scope{}, &report.History{By: report.ByTenant}), []string{"Cost of the platform", "The ledger has no costs yet", "--by tenant"}, "Months"},
		"no complete day":  {page.NewCost(page.Scope{}, &report.History{Now: now, By: report.ByTenant, Currency: "EUR", Months: []report.Sum{{From: now, Until: now.AddDate(0, 1, 0)}}}), []string{"A forecast needs the cost of a complete day", "There is no cost in this month yet."}, "expected"},
		"without a ledger": {page.NewCostProblem(page.Scope{}, page.NoLedger), []string{"Costs are not configured"}, "Months"},
	} {
		t.Run(name, func(t *testing.T) {
			text := render(t, c.page)
			at := 0
			for _, part := range c.parts {
				i := strings.Index(text[at:], part)
				if i < 0 {
					t.Fatalf("no %q after %q in\n%s", part, text[:at], text)
				}
				at += i
			}
			if c.lacks != "" && strings.Contains(text, c.lacks) {
				t.Errorf("the page has %q:\n%s", c.lacks, text)
			}
		})
	}
	for _, amount := range []money.Amount{0, 1, 999, money.Unit, 1_234_567 * money.Unit} {
		h := makeHistory("USD")
		h.Months[0].Total, h.Forecast.Total.Month = amount, 2*amount
		body, ok := page.NewCost(page.Scope{}, h).Body.(page.Cost)
		if !ok {
			t.Fatal("no costs")
		}
		for _, chart := range body.Charts {
			for _, bar := range bars(chart) {
				if bar[0] < 0 || bar[1] < 0 || bar[2] > chart.Width || bar[3] > chart.Height || bar[2] <= bar[0] || bar[3] < bar[1] {
					t.Errorf("%s with %s: a bar at %v", chart.ID, amount, bar)
				}
			}
			if n := len(chart.Lines); n < 2 || n > 7 {
				t.Errorf("%s with %s: %d lines", chart.ID, amount, n)
			}
		}
	}
}

// bars returns the corners of each bar: left, top, right and bottom.
func bars(c page.Chart) (all [][4]int) {
	for _, b := range c.Bars {
		all = append(all, [4]int{b.X, min(b.Y, b.ExpectedY), b.X + b.Width, b.Y + b.Height})
	}
	return all
}
