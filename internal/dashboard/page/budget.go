package page

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/budget"
	"croft.dev/croft/internal/diagnose/why"
)

// AddBudgets adds the budgets in the status of tenants to a page of costs. Tenants without a budget are left out.
func AddBudgets(p Page, tenants []v1alpha1.Tenant) Page {
	body, ok := p.Body.(Cost)
	s := listBudgets(tenants)
	if !ok || len(s.Rows) == 0 {
		return p
	}
	body.Budgets = Sections{s}
	p.Body = body
	p.Commands = append(p.Commands, "croft cost --budgets")
	return p
}

// listBudgets lists the budgets of which most is spent first.
func listBudgets(tenants []v1alpha1.Tenant) Section {
	s := Section{
		Heading: T("Budgets"), Head: listHeads("Tenant", "Month", "Budget", "Spent", "Left", "Share", "Expected", "Stage", "Remark"),
		Note: T("For calendar months in UTC. The cost is the one that the tenant's own people may read: without the idle cost of pools " +
			"that other tenants may use."),
	}
	var found []*v1alpha1.Tenant
	for i := range tenants {
		if tenants[i].Status.Budget != nil {
			found = append(found, &tenants[i])
		}
	}
	slices.SortFunc(found, func(a, b *v1alpha1.Tenant) int {
		return cmp.Or(cmp.Compare(b.Status.Budget.Percent, a.Status.Budget.Percent), strings.Compare(a.Name, b.Name))
	})
	if more := len(found) - mostLines; more > 0 {
		s.Note = append(s.Note, T("%d more lines are not shown: use the command below.", more)...)
		found = found[:mostLines]
	}
	for _, t := range found {
		s.Rows = append(s.Rows, listBudgetCells(t.Name, t.Status.Budget))
	}
	return s
}

func listBudgetCells(tenant string, b *v1alpha1.TenantBudgetStatus) []Cell {
	share := Cell{Text: "-"}
	if b.Spent != "" {
		percent := int(b.Percent)
		share = Cell{Share: &percent}
	}
	stage, remark := describeStage(b.Stage), Cell{Text: "-"}
	switch {
	case b.Problem != "":
		remark = Cell{Text: b.Problem}
	case b.Spent == "":
		remark.PageText = T("the ledger has not reported the cost of this month yet")
	case b.Stage != "":
		remark.PageText = describeEffect(b.Stage)
	}
	return []Cell{
		{Text: tenant}, {Text: b.Month}, {Text: strconv.FormatInt(b.Monthly, 10) + " " + b.Currency}, {Text: cmp.Or(b.Spent, "-")},
		{Text: cmp.Or(budget.GetLeft(b), "-")}, share, {Text: cmp.Or(b.Forecast, "-")}, stage, remark,
	}
}

// describeStage returns the stage of a budget that is in force.
func describeStage(stage v1alpha1.BudgetStage) Cell {
	switch stage {
	case "":
		return Cell{Text: "-"}
	case v1alpha1.BudgetWarn:
		return Cell{Text: string(stage), Verdict: why.Waiting}
	default:
		return Cell{Text: string(stage), Verdict: why.Bad}
	}
}

// describeEffect describes the effect of a stage, as budget.DescribeEffect.
func describeEffect(stage v1alpha1.BudgetStage) Text {
	switch stage {
	case v1alpha1.BudgetDenyNewPods:
		return T("new pods are refused; existing pods keep running")
	case v1alpha1.BudgetDenyNewNodes:
		return T("new pods run on existing nodes only")
	default:
		return T("changes of workloads get a warning")
	}
}
