package cli

import (
	"context"
	"strconv"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/budget"
)

// budgetLine is a tenant's budget for this month.
type budgetLine struct {
	Tenant string `json:"tenant"`
	v1alpha1.TenantBudgetStatus
	// Left is the rest of the budget. It is negative beyond the budget.
	Left string `json:"left,omitempty"`
}

// runBudgets prints the budgets in the status of the Tenants that the user may list.
func (a *app) runBudgets(ctx context.Context, o costOptions) error {
	c, err := a.newClient()
	if err != nil {
		return toFailure(err)
	}
	var tenants v1alpha1.TenantList
	if err := readLists(ctx, c, []namedList{{"tenants.croft.dev", &tenants}}); err != nil {
		return toFailure(err)
	}
	lines := []budgetLine{}
	for i := range tenants.Items {
		if b := tenants.Items[i].Status.Budget; b != nil {
			lines = append(lines, budgetLine{tenants.Items[i].Name, *b, budget.GetLeft(b)})
		}
	}
	if o.output == formatJSON || o.output == formatYAML {
		return o.output.print(a.out, lines)
	}
	if len(lines) == 0 {
		printSafely(a.err, "no tenant has a budget: set budget of a Tenant, or tenantDefaults.budget of the Platform\n")
		return nil
	}
	var rows [][]string
	for i := range lines {
		l := &lines[i]
		percent := ""
		if l.Spent != "" {
			percent = strconv.FormatInt(l.Percent, 10) + " %"
		}
		rows = append(rows, []string{l.Tenant, l.Month, strconv.FormatInt(l.Monthly, 10) + " " + l.Currency, l.Spent, l.Left, percent, l.Forecast, string(l.Stage)})
	}
	printTable(a.out, []string{"TENANT", "MONTH", "BUDGET", "SPENT", "LEFT", "PERCENT", "FORECAST", "STAGE"}, rows)
	for i := range lines {
		if lines[i].Problem != "" {
			printSafely(a.out, "~ %s: %s\n", lines[i].Tenant, lines[i].Problem)
		}
		if lines[i].Spent == "" {
			printSafely(a.out, "~ %s: the ledger has not reported the cost of %s yet\n", lines[i].Tenant, lines[i].Month)
		}
	}
	return nil
}
