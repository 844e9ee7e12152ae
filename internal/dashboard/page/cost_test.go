package page_test

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/cost/money"
	"croft.dev/croft/internal/cost/report"
	"croft.dev/croft/internal/dashboard/page"
	"croft.dev/croft/internal/declare/budget"
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
			text := renderText(t, c.page)
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
			for _, bar := range listBarCorners(chart) {
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

// newBudget returns a tenant with a budget of 800 EUR in its status.
func newBudget(name string, change func(*v1alpha1.TenantBudgetStatus)) v1alpha1.Tenant {
	b := &v1alpha1.TenantBudgetStatus{Month: "2026-11", Monthly: 800, Currency: "EUR", Spent: "400.50", Percent: 50, Forecast: "620.00"}
	change(b)
	return v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: v1alpha1.TenantStatus{Budget: b}}
}

// TestBudgets compares the texts of budgets, on pages with and without costs. The effects have the words of croft status.
func TestBudgets(t *testing.T) {
	tenants := []v1alpha1.Tenant{
		{ObjectMeta: metav1.ObjectMeta{Name: "unbudgeted"}},
		newBudget("a-half", func(*v1alpha1.TenantBudgetStatus) {}),
		newBudget("warned", func(b *v1alpha1.TenantBudgetStatus) { b.Percent, b.Stage = 80, v1alpha1.BudgetWarn }),
		newBudget("ended", func(b *v1alpha1.TenantBudgetStatus) {
			b.Spent, b.Percent, b.Forecast, b.Stage = "961.00", 120, "1200.00", v1alpha1.BudgetDenyNewPods
		}),
		newBudget("no-nodes", func(b *v1alpha1.TenantBudgetStatus) {
			b.Spent, b.Percent, b.Stage = "812.40", 101, v1alpha1.BudgetDenyNewNodes
		}),
		newBudget("new", func(b *v1alpha1.TenantBudgetStatus) { b.Spent, b.Percent, b.Forecast = "", 0, "" }),
		newBudget("other", func(b *v1alpha1.TenantBudgetStatus) { b.Percent, b.Problem = 0, "the ledger's currency is USD" }),
	}
	rows := []string{
		"Budgets", "without the idle cost of pools that other tenants may use",
		"ended 2026-11 800 EUR 961.00 -161.00 120% 1200.00 ✗ DenyNewPods " + budget.DescribeEffect(v1alpha1.BudgetDenyNewPods),
		"no-nodes 2026-11 800 EUR 812.40 -12.40 101% 620.00 ✗ DenyNewNodes " + budget.DescribeEffect(v1alpha1.BudgetDenyNewNodes),
		"warned 2026-11 800 EUR 400.50 399.50 80% 620.00 … Warn " + budget.DescribeEffect(v1alpha1.BudgetWarn),
		"a-half 2026-11 800 EUR 400.50 399.50 50% 620.00 - -",
		"new 2026-11 800 EUR - - - - - the ledger has not reported the cost of this month yet",
		"other 2026-11 800 EUR 400.50 399.50 0% 620.00 - the ledger's currency is USD",
	}
	for name, c := range map[string]struct {
		page page.Page
		more []string
	}{
		"costs":     {page.NewCost(page.Scope{}, makeHistory("USD")), []string{"Months", "croft cost --budgets"}},
		"no ledger": {page.NewCostProblem(page.Scope{}, page.NoLedger), []string{"Costs are not configured", "croft cost --budgets"}},
	} {
		text := renderText(t, page.AddBudgets(c.page, tenants))
		at := 0
		for _, part := range append(slices.Clone(rows), c.more...) {
			i := strings.Index(text[at:], part)
			if i < 0 {
				t.Fatalf("%s: no %q after %q in\n%s", name, part, text[:at], text)
			}
			at += i
		}
		if strings.Contains(text, "unbudgeted") {
			t.Errorf("%s: a tenant without a budget has a row:\n%s", name, text)
		}
		if text := renderText(t, page.AddBudgets(c.page, tenants[:1])); strings.Contains(text, "Budget") || strings.Contains(text, "--budgets") {
			t.Errorf("%s: budgets without any:\n%s", name, text)
		}
	}
}

// listBarCorners returns the corners of each bar: left, top, right and bottom.
func listBarCorners(c page.Chart) (all [][4]int) {
	for _, b := range c.Bars {
		all = append(all, [4]int{b.X, min(b.Y, b.ExpectedY), b.X + b.Width, b.Y + b.Height})
	}
	return all
}
