package page

import (
	"cmp"
	"fmt"

	"croft.dev/croft/internal/cost/money"
	"croft.dev/croft/internal/cost/report"
)

// Cost is the page of the costs of a tenant or of the platform.
type Cost struct {
	// Budgets are the budgets of the tenants that the user may read; often there are none.
	Budgets Sections
	// Problem explains why there are no costs; empty if there are some.
	Problem Text
	// Action is the path of the form that chooses the breakdown; empty without costs.
	Action, By string
	Groupings  []Grouping
	Trend      Sections
	Charts     []Chart
	Breakdown  Sections
}

// Grouping is an option of the breakdown.
type Grouping struct {
	Value string
	Label Text
	On    bool
}

func (Cost) templateName() string { return "cost" }

// groupingLabels are the texts of the groupings.
var groupingLabels = map[string]Text{
	report.ByTenant: T("tenant"), report.ByNamespace: T("namespace"), report.ByWorkload: T("workload"),
	report.ByPool: T("pool"), report.ByCostCode: T("cost code"), report.ByInstanceType: T("instance type"),
}

// Scope is the subject of a page of costs: the tenant of a namespace, or the platform without one.
type Scope struct{ Namespace, Tenant string }

// Path returns the path of the page.
func (s Scope) Path() string {
	if s.Namespace == "" {
		return "/costs"
	}
	return Link("namespaces", s.Namespace, "cost")
}

// mostLines is the maximum number of lines of a breakdown.
const mostLines = 50

// Texts about missing costs.
var (
	NoLedger = T("Costs are not configured: a platform admin runs croft ledger, and starts the dashboard with --ledger. " +
		"Without a ledger, croft cost computes the cost of the last hours in a terminal.")
	UnknownUser = T("The ledger does not accept your login: the API server must accept the tokens of your identity provider, " +
		"or the ledger must have the --authentication-config of croft proxy.")
	OldLedger      = T("The ledger is older than the dashboard, and has no months: a platform admin upgrades it.")
	NoLedgerAnswer = T("The ledger did not answer. Reload the page. If it fails again, the dashboard's log has the error.")
	noCharges      = T("The ledger has no costs yet: the first ones appear within a minute after it has started. Workloads cost their requests: give them some.")
)

// NewCostProblem returns the page without costs.
func NewCostProblem(s Scope, problem Text) Page { return newCost(s, "", Cost{Problem: problem}) }

// NewCost returns the page of a history.
func NewCost(s Scope, h *report.History) Page {
	body := Cost{Action: s.Path(), By: h.By}
	for _, by := range report.Groupings() {
		body.Groupings = append(body.Groupings, Grouping{by, groupingLabels[by], by == h.By})
	}
	if len(h.Months) == 0 {
		return newCost(s, h.By, Cost{Problem: noCharges})
	}
	body.Trend = Sections{listMonths(h)}
	body.Charts = []Chart{drawMonths(h)}
	if len(h.Days) > 1 {
		body.Charts = append(body.Charts, drawDays(h))
	}
	body.Breakdown = Sections{listLines(h)}
	if len(h.Limits)+len(h.MissingPrices) > 0 {
		limits := Section{Heading: T("Limits of these figures"), List: listRaw(h.Limits)}
		for _, price := range h.MissingPrices {
			limits.List = append(limits.List, T("no price, and no cost: %s", price))
		}
		body.Breakdown = append(body.Breakdown, limits)
	}
	return newCost(s, h.By, body)
}

func newCost(s Scope, by string, body Cost) Page {
	target := ""
	p := Page{Title: T("Cost of the platform"), Body: body}
	if s.Namespace != "" {
		target = " -n " + s.Namespace
		p.Title, p.Namespace, p.Tab = T("Cost of tenant %s", s.Tenant), s.Namespace, TabCost
	}
	p.Heading = p.Title
	by = cmp.Or(by, report.ByTenant)
	p.Commands = []string{
		"croft cost --ledger URL --since 30d --by " + by + target, "croft cost --ledger URL --forecast --by " + by + target,
	}
	return p
}

func listMonths(h *report.History) Section {
	s := Section{Heading: T("Months"), Note: T("In %s, by calendar months in UTC.", h.Currency), Head: listHeads("Month", "Cost", "Change")}
	for i := len(h.Months) - 1; i >= 0; i-- {
		m := h.Months[i]
		isCurrent := m.Until.After(h.Now)
		cost := Cell{Text: formatCost(m.Total, m.Unknown)}
		if isCurrent && h.Forecast != nil {
			cost.PageText = T("%s so far, %s expected", cost.Text, h.Forecast.Total.Month.Format(2))
		} else if isCurrent {
			cost.PageText = T("%s so far", cost.Text)
		}
		change := Cell{Text: "-"}
		if i > 0 && !isCurrent {
			change.Text = formatChange(m.Total, h.Months[i-1].Total)
		} else if i > 0 && h.Forecast != nil {
			change.PageText = T("%s expected", formatChange(h.Forecast.Total.Month, h.Months[i-1].Total))
		}
		s.Rows = append(s.Rows, []Cell{{Text: m.From.Format("2006-01")}, cost, change})
	}
	if f := h.Forecast; f != nil {
		s.Note = append(s.Note, T("The expected cost continues the mean of the %d complete days from %s.", int(f.BaseUntil.Sub(f.BaseFrom).Hours()/24), f.BaseFrom.Format("2006-01-02"))...)
	} else {
		s.Note = append(s.Note, T("A forecast needs the cost of a complete day: it is here tomorrow.")...)
	}
	return s
}

// formatCost marks an amount with an unknown part, as croft cost does.
func formatCost(a money.Amount, unknown bool) string {
	switch {
	case unknown && a == 0:
		return "?"
	case unknown:
		return a.Format(2) + " + ?"
	default:
		return a.Format(2)
	}
}

// formatChange returns the change from one amount to another in percent.
func formatChange(now, before money.Amount) string {
	if before <= 0 {
		return "-"
	}
	return fmt.Sprintf("%+.0f %%", 100*(float64(now)/float64(before)-1))
}

func listLines(h *report.History) Section {
	s := Section{
		Heading: T("This month by %s", groupingLabels[h.By]), Head: listHeads("Name", "Cost", "Idle", "Total", "Expected", "Last month"),
		Note:  T("Cost is the cost of own requests, volumes and load balancers. Idle is the share of the idle cost of pools."),
		Empty: T("There is no cost in this month yet."),
	}
	last, expected := map[string]string{}, map[string]string{}
	for _, line := range h.LastMonth {
		last[line.Name] = formatCost(line.Total, line.UnknownSeconds > 0)
	}
	if h.Forecast != nil {
		for _, line := range h.Forecast.Lines {
			expected[line.Name] = line.Month.Format(2)
		}
	}
	lines := h.ThisMonth
	if more := len(lines) - mostLines; more > 0 {
		s.Note = append(s.Note, T("%d more lines are not shown: use the command below.", more)...)
		lines = lines[:mostLines]
	}
	for _, line := range lines {
		idle := formatCost(line.Idle, line.IdleUnknown)
		if line.IdleHidden && line.Idle == 0 {
			idle = "-"
		} else if line.IdleHidden {
			idle += " + -"
		}
		total := formatCost(line.Total, line.UnknownSeconds > 0)
		if line.Estimated > 0 {
			total = "~" + total
		}
		s.Rows = append(s.Rows, []Cell{
			{Text: line.Name}, {Text: formatCost(line.Cost, line.CostUnknown)}, {Text: idle}, {Text: total},
			{Text: cmp.Or(expected[line.Name], "-")}, {Text: cmp.Or(last[line.Name], "-")},
		})
	}
	return s
}
