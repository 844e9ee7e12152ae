package budget

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"croft.dev/croft/api/v1alpha1"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// shop has a budget of 800 EUR with all stages.
func newShop() *v1alpha1.TenantBudget {
	return &v1alpha1.TenantBudget{Monthly: 800, Currency: "EUR", At: map[string]v1alpha1.BudgetStage{
		"80": v1alpha1.BudgetWarn, "100": v1alpha1.BudgetDenyNewNodes, "120": v1alpha1.BudgetDenyNewPods}}
}

// answer is a complete answer with a cost of shop, in units of the currency.
func newAnswer(spent int64) *Answer {
	return &Answer{Month: "2026-11", Now: noon, Currency: "EUR", Complete: true, Tenants: map[string]Figures{"shop": {Spent: spent * 1_000_000}}}
}

// status is a status of the same month.
func newStatus(spent string, percent int64, stage v1alpha1.BudgetStage, begin int64) *v1alpha1.TenantBudgetStatus {
	s := &v1alpha1.TenantBudgetStatus{Month: "2026-11", Monthly: 800, Currency: "EUR", Spent: spent, Percent: percent, Stage: stage, StagePercent: begin}
	if stage != "" {
		s.StageSpent = spent
	}
	at := metav1.NewTime(noon.Add(-time.Hour))
	s.Observed = &at
	return s
}

// TestComputeStage computes the stage from figures alone.
func TestComputeStage(t *testing.T) {
	for _, c := range []struct {
		spent   int64
		percent int64
		want    v1alpha1.BudgetStage
	}{
		{0, 0, ""}, {639, 79, ""}, {640, 80, v1alpha1.BudgetWarn}, {799, 99, v1alpha1.BudgetWarn}, {800, 100, v1alpha1.BudgetDenyNewNodes},
		{959, 119, v1alpha1.BudgetDenyNewNodes}, {960, 120, v1alpha1.BudgetDenyNewPods}, {80_000, 10_000, v1alpha1.BudgetDenyNewPods},
	} {
		got := Compute(newShop(), nil, newAnswer(c.spent), "shop", noon)
		if got.Stage != c.want || got.Percent != c.percent {
			t.Errorf("%d: got %d %% %q, want %d %% %q", c.spent, got.Percent, got.Stage, c.percent, c.want)
		}
	}
	warning := &v1alpha1.TenantBudget{Monthly: 800, Currency: "EUR"}
	if got := Compute(warning, nil, newAnswer(2000), "shop", noon); got.Stage != v1alpha1.BudgetWarn || got.StagePercent != 80 {
		t.Errorf("without stages: got %+v", got)
	}
}

// TestComputeKeepsStage expects the stage after a later answer, or without an answer.
func TestComputeKeepsStage(t *testing.T) {
	pods, nodes, warn := v1alpha1.BudgetDenyNewPods, v1alpha1.BudgetDenyNewNodes, v1alpha1.BudgetWarn
	october := newStatus("999.00", 124, pods, 120)
	october.Month = "2026-10"
	december := newStatus("999.00", 124, pods, 120)
	december.Month = "2026-12"
	dollars := newStatus("999.00", 124, pods, 120)
	dollars.Currency = "USD"
	edit := func(a *Answer, edit func(*Answer)) *Answer { edit(a); return a }
	for _, c := range []struct {
		name   string
		budget func(*v1alpha1.TenantBudget)
		last   *v1alpha1.TenantBudgetStatus
		answer *Answer
		want   v1alpha1.BudgetStage
		spent  string
	}{
		{"no ledger", nil, newStatus("999.00", 124, pods, 120), nil, pods, "999.00"},
		{"no ledger, a budget below", nil, newStatus("100.00", 12, "", 0), nil, "", "100.00"},
		{"no ledger in a new month", nil, october, nil, "", ""},
		{"the clock was set back", nil, december, nil, pods, "999.00"},
		{"another currency", nil, dollars, nil, "", ""},
		{"a ledger in another currency", nil, newStatus("999.00", 124, pods, 120), edit(newAnswer(1), func(a *Answer) { a.Currency = "USD" }), pods, "999.00"},
		{"an answer of the last month", nil, newStatus("999.00", 124, pods, 120), edit(newAnswer(1), func(a *Answer) { a.Month = "2026-10" }), pods, "999.00"},
		{"an older answer", nil, newStatus("999.00", 124, pods, 120), edit(newAnswer(1), func(a *Answer) { a.Now = noon.Add(-2 * time.Hour) }), pods, "999.00"},
		{"a ledger that lost its records", nil, newStatus("999.00", 124, pods, 120), edit(newAnswer(1), func(a *Answer) { a.Complete = false }), pods, "999.00"},
		{"a ledger that lost its records, and more cost", nil, newStatus("700.00", 87, warn, 80), edit(newAnswer(990), func(a *Answer) { a.Complete = false }), pods, "990.00"},
		{"a tenant that the ledger does not know", nil, newStatus("999.00", 124, pods, 120), edit(newAnswer(1), func(a *Answer) { a.Tenants = nil; a.Complete = false }), pods, "999.00"},
		{"within the margin", nil, newStatus("960.00", 120, pods, 120), newAnswer(950), pods, "950.00"},
		{"at the margin", nil, newStatus("960.00", 120, pods, 120), newAnswer(944), pods, "944.00"},
		{"below the margin", nil, newStatus("960.00", 120, pods, 120), newAnswer(943), nodes, "943.00"},
		{"below the margin of the first stage", nil, newStatus("640.00", 80, warn, 80), newAnswer(623), "", "623.00"},
		{"a stricter stage", nil, newStatus("640.00", 80, warn, 80), newAnswer(800), nodes, "800.00"},
		{"a higher budget", func(b *v1alpha1.TenantBudget) { b.Monthly = 900 }, newStatus("960.00", 120, pods, 120), nil, nodes, "960.00"},
		{"a higher budget, just below the stage", func(b *v1alpha1.TenantBudget) { b.Monthly = 801 }, newStatus("960.00", 120, pods, 120), nil, nodes, "960.00"},
		{"a lower budget", func(b *v1alpha1.TenantBudget) { b.Monthly = 500 }, newStatus("640.00", 80, warn, 80), nil, pods, "640.00"},
		{"a higher percentage", func(b *v1alpha1.TenantBudget) { delete(b.At, "120"); b.At["121"] = pods }, newStatus("960.00", 120, pods, 120), nil, nodes, "960.00"},
	} {
		b := newShop()
		if c.budget != nil {
			c.budget(b)
		}
		if got := Compute(b, c.last, c.answer, "shop", noon); got.Stage != c.want || got.Spent != c.spent {
			t.Errorf("%s: got %q at %q, want %q at %q", c.name, got.Stage, got.Spent, c.want, c.spent)
		}
	}
	if got := Compute(nil, newStatus("999.00", 124, pods, 120), nil, "shop", noon); got != nil {
		t.Errorf("without a budget: got %+v", got)
	}
	other := Compute(newShop(), nil, &Answer{Month: "2026-11", Now: noon, Currency: "USD"}, "shop", noon)
	if want := "the ledger's currency is USD, not EUR: write the budget in USD"; other.Problem != want || other.Spent != "" {
		t.Errorf("got %+v, want the problem %q", other, want)
	}
}

// TestDescribe compares the texts for users. The figures of a stage are from its beginning.
func TestDescribe(t *testing.T) {
	first := Compute(newShop(), nil, newAnswer(961), "shop", noon)
	later := Compute(newShop(), first, newAnswer(1200), "shop", noon.Add(time.Minute))
	stage, text := Describe("shop", "#shop-oncall", later)
	if want := "tenant shop has spent 961.00 of its 800 EUR for 2026-11, at least 120 %; contact: #shop-oncall"; stage != v1alpha1.BudgetDenyNewPods || text != want {
		t.Errorf("got %q %q, want %q", stage, text, want)
	}
	if later.Spent != "1200.00" || later.Percent != 150 || GetLeft(later) != "-400.00" {
		t.Errorf("got %+v, left %s", later, GetLeft(later))
	}
	if stage, text := Describe("shop", "#shop-oncall", newStatus("1.00", 0, "", 0)); stage != "" || text != "" {
		t.Errorf("without a stage: got %q %q", stage, text)
	}
	december := Compute(newShop(), later, nil, "shop", noon.AddDate(0, 1, 0))
	for _, c := range []struct {
		before, after *v1alpha1.TenantBudgetStatus
		want          string
	}{
		{nil, first, "tenant shop has spent 961.00 of its 800 EUR for 2026-11, at least 120 %: new pods are refused; existing pods keep running"},
		{first, later, ""},
		{later, december, "a new month has begun: the stage DenyNewPods has ended"},
		{later, nil, "the stage DenyNewPods has ended"},
		{nil, newStatus("1.00", 0, "", 0), ""},
		{nil, nil, ""},
	} {
		if got := DescribeChange("shop", c.before, c.after); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
	if got, want := strings.Join(ListStages(newShop()), ", "), "80 % Warn, 100 % DenyNewNodes, 120 % DenyNewPods"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestIsWorthWriting expects a write only if a rounded figure changes.
func TestIsWorthWriting(t *testing.T) {
	before := newStatus("640.10", 80, v1alpha1.BudgetWarn, 80)
	same := before.DeepCopy()
	same.Spent = "640.90"
	if IsWorthWriting(before, same) || IsWorthWriting(nil, nil) {
		t.Error("a figure that rounds to the same percentage is written")
	}
	for name, edit := range map[string]func(*v1alpha1.TenantBudgetStatus){
		"month":    func(s *v1alpha1.TenantBudgetStatus) { s.Month = "2026-12" },
		"stage":    func(s *v1alpha1.TenantBudgetStatus) { s.Stage = v1alpha1.BudgetDenyNewPods },
		"percent":  func(s *v1alpha1.TenantBudgetStatus) { s.Percent = 81 },
		"forecast": func(s *v1alpha1.TenantBudgetStatus) { s.Forecast = "800.00" },
		"problem":  func(s *v1alpha1.TenantBudgetStatus) { s.Problem = "another currency" },
		"budget":   func(s *v1alpha1.TenantBudgetStatus) { s.Monthly = 900 },
		"figures":  func(s *v1alpha1.TenantBudgetStatus) { s.Spent = "" },
		"prices":   func(s *v1alpha1.TenantBudgetStatus) { s.Prices = map[string]string{"apps": "28.45"} },
	} {
		after := before.DeepCopy()
		edit(after)
		if !IsWorthWriting(before, after) {
			t.Errorf("a change of %s is not written", name)
		}
	}
	if !IsWorthWriting(before, nil) || !IsWorthWriting(nil, before) {
		t.Error("the beginning or end of a budget is not written")
	}
}

// TestMonthsAndResolve tests the functions on months, and Resolve.
func TestMonthsAndResolve(t *testing.T) {
	if got := GetEndOfMonth(time.Date(2026, 12, 31, 23, 59, 0, 0, time.UTC)); !got.Equal(time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)) {
		t.Errorf("got %s", got)
	}
	kiritimati := time.FixedZone("", 14*3600)
	if got := FormatMonth(time.Date(2026, 12, 1, 1, 0, 0, 0, kiritimati)); got != "2026-11" {
		t.Errorf("got %s", got)
	}
	none, other := &v1alpha1.TenantBudget{}, newShop()
	if Resolve(other, none) != nil || Resolve(none, nil) != nil || Resolve(other, nil) != other || Resolve(none, other) != other {
		t.Error("the wrong budget is effective")
	}
}

// TestPrices expects the prices in the status after an answer, and the text for the namespaces.
func TestPrices(t *testing.T) {
	last := map[string]string{"apps": "30.00", "jobs": "9.00"}
	for _, c := range []struct {
		name   string
		last   map[string]string
		ledger map[string]int64
		edit   func(*v1alpha1.TenantBudget, *v1alpha1.TenantBudgetStatus, *Answer)
		want   string
	}{
		{"the first price", nil, map[string]int64{"apps": 28_459_999}, nil, "EUR;340 of 800 EUR left;apps=28.45"},
		{"no price yet", nil, nil, nil, ""},
		{"below 1 %", last, map[string]int64{"apps": 30_290_000}, nil, "EUR;340 of 800 EUR left;apps=30.00;jobs=9.00"},
		{"1 % more", last, map[string]int64{"apps": 30_300_000}, nil, "EUR;340 of 800 EUR left;apps=30.30;jobs=9.00"},
		{"1 % less", last, map[string]int64{"apps": 29_700_000}, nil, "EUR;340 of 800 EUR left;apps=29.70;jobs=9.00"},
		{"another pool", last, map[string]int64{"batch": 0}, nil, "EUR;340 of 800 EUR left;apps=30.00;batch=0.00;jobs=9.00"},
		{"a pool that costs nothing", map[string]string{"apps": "0.00"}, map[string]int64{"apps": 28_000_000}, nil, "EUR;340 of 800 EUR left;apps=28.00"},
		{"not enabled", last, map[string]int64{"apps": 28_000_000}, func(b *v1alpha1.TenantBudget, _ *v1alpha1.TenantBudgetStatus, _ *Answer) { b.PriceInResponse = false }, ""},
		{"a spent budget", last, nil, func(_ *v1alpha1.TenantBudget, _ *v1alpha1.TenantBudgetStatus, a *Answer) {
			a.Tenants["shop"] = Figures{Spent: 800_010_000}
		}, "EUR;its budget of 800 EUR is spent;apps=30.00;jobs=9.00"},
		{"nothing left", last, nil, func(_ *v1alpha1.TenantBudget, _ *v1alpha1.TenantBudgetStatus, a *Answer) {
			a.Tenants["shop"] = Figures{Spent: 800_000_000}
		}, "EUR;0 of 800 EUR left;apps=30.00;jobs=9.00"},
		{"a new month", last, nil, func(_ *v1alpha1.TenantBudget, s *v1alpha1.TenantBudgetStatus, _ *Answer) { s.Month = "2026-10" }, "EUR;340 of 800 EUR left;apps=30.00;jobs=9.00"},
		{"a new month without a ledger", last, nil, func(_ *v1alpha1.TenantBudget, s *v1alpha1.TenantBudgetStatus, a *Answer) {
			s.Month, a.Month = "2026-10", "2026-10"
		}, ""},
		{"another currency", last, nil, func(_ *v1alpha1.TenantBudget, s *v1alpha1.TenantBudgetStatus, _ *Answer) { s.Currency = "USD" }, ""},
	} {
		b, s, a := newShop(), newStatus("459.99", 57, "", 0), newAnswer(0)
		b.PriceInResponse, s.Prices = true, c.last
		a.Tenants["shop"] = Figures{Spent: 459_990_000, Prices: c.ledger}
		if c.edit != nil {
			c.edit(b, s, a)
		}
		next := Compute(b, s, a, "shop", noon)
		if got := DescribePrices(next); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
	if last["apps"] != "30.00" || len(last) != 2 {
		t.Errorf("the last status has changed: %v", last)
	}
}
