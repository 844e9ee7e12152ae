// Package budget computes the stage of a tenant's budget from the ledger's figures, and the messages to
// the tenant's people. It does no I/O.
//
// The stage is in the Tenant's status. It does not depend on an available ledger: without new figures, the
// last stage stays in force until the month ends.
package budget

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"croft.dev/croft/api/v1alpha1"
)

const (
	// centsPerUnit is the number of hundredths in a unit of the currency.
	centsPerUnit = 100
	// millionthsPerCent is the number of the ledger's units in a hundredth.
	millionthsPerCent = 10_000
	// margin is the number of percentage points by which the cost must fall below the percentage of a
	// stage before the stage ends. Without it, corrections of the current hour could end a stage and begin it
	// again.
	margin = 2
)

const (
	// Path is the path of the ledger's resource with the cost of all tenants in this month.
	Path = "/v1/budgets"
	// Audience is the audience of tokens for this resource. The API server does not accept such tokens.
	Audience = "croft-ledger"
	// Subresource is the subresource of costs.croft.dev whose `get` allows to read it.
	Subresource = "budgets"
)

// defaultStages are the stages of a budget that has none: nothing is refused by default.
var defaultStages = map[string]v1alpha1.BudgetStage{"80": v1alpha1.BudgetWarn}

// Answer is the ledger's answer about the cost of all tenants in a calendar month, in UTC. It has only
// the costs that the tenants' own people may read.
type Answer struct {
	// Month is the month, such as 2026-11, and Now the time of the figures.
	Month string    `json:"month"`
	Now   time.Time `json:"now"`
	// Currency is the currency of all amounts.
	Currency string `json:"currency"`
	// Complete means that the ledger has the cost of each hour of the month until now.
	Complete bool `json:"complete"`
	// Tenants are the tenants with a cost, by name.
	Tenants map[string]Figures `json:"tenants"`
}

// Figures are the cost of a tenant, in millionths of the currency.
type Figures struct {
	// Spent is the cost since the beginning of the month.
	Spent int64 `json:"spent"`
	// Forecast is the expected cost of the whole month, if there is a forecast.
	Forecast *int64 `json:"forecast,omitempty"`
	// Prices are the mean prices of a CPU, or of 9 GiB of memory, for a month that the tenant's own requests
	// had since the beginning of the last complete day, by pool.
	Prices map[string]int64 `json:"prices,omitempty"`
}

// FormatMonth returns the calendar month of a time in UTC, such as 2026-11.
func FormatMonth(t time.Time) string { return t.UTC().Format("2006-01") }

// GetEndOfMonth returns the beginning of the next calendar month in UTC.
func GetEndOfMonth(t time.Time) time.Time {
	t = t.UTC()
	return time.Date(t.Year(), t.Month()+1, 1, 0, 0, 0, 0, time.UTC)
}

// Resolve returns the effective budget, or nil. A tenant's budget replaces the default as a whole.
func Resolve(platform, tenant *v1alpha1.TenantBudget) *v1alpha1.TenantBudget {
	b := tenant
	if b == nil {
		b = platform
	}
	if b == nil || b.Monthly == 0 {
		return nil
	}
	return b
}

// Compute returns the new status of a tenant's budget. last is the present status, and answer the ledger's
// latest answer; both may be nil. The result is nil without a budget.
//
// In a month the cost never falls because of an incomplete answer, such as of a ledger that has lost its
// volume. So only a complete answer or a changed budget makes the stage less strict.
func Compute(b *v1alpha1.TenantBudget, last *v1alpha1.TenantBudgetStatus, answer *Answer, tenant string, now time.Time) *v1alpha1.TenantBudgetStatus {
	if b == nil {
		return nil
	}
	next := &v1alpha1.TenantBudgetStatus{Month: FormatMonth(now), Monthly: b.Monthly, Currency: b.Currency}
	if last != nil && last.Month > next.Month {
		next.Month = last.Month // The clock was set back. A new month has begun, and does not end by that.
	}
	if b.PriceInResponse && last != nil && last.Currency == b.Currency {
		next.Prices = last.Prices
	}
	if last != nil && (last.Month != next.Month || last.Currency != b.Currency) {
		last = nil
	}
	if last != nil {
		next.Spent, next.Forecast, next.Observed = last.Spent, last.Forecast, last.Observed
	}
	takeAnswer(next, answer, tenant, b.PriceInResponse)
	if next.Spent == "" {
		return next
	}
	cents := parseCents(next.Spent)
	next.Percent = cents / b.Monthly
	next.Stage, next.StagePercent = findStage(b, next.Percent)
	if last != nil && last.Stage != "" {
		keepStage(b, next, last)
	}
	if next.Stage == "" {
		return next
	}
	next.StageSpent = next.Spent
	if last != nil && last.Stage == next.Stage && last.Monthly == next.Monthly {
		next.StageSpent = last.StageSpent
	}
	return next
}

// takeAnswer sets the figures of the ledger's answer, unless they are older, or of another month or currency.
func takeAnswer(next *v1alpha1.TenantBudgetStatus, answer *Answer, tenant string, withPrices bool) {
	if answer == nil || answer.Month != next.Month || next.Observed != nil && answer.Now.Before(next.Observed.Time) {
		return
	}
	if answer.Currency != next.Currency {
		next.Problem = fmt.Sprintf("the ledger's currency is %s, not %s: write the budget in %s", answer.Currency, next.Currency, answer.Currency)
		return
	}
	figures := answer.Tenants[tenant]
	cents := figures.Spent / millionthsPerCent
	if next.Spent != "" && !answer.Complete {
		cents = max(cents, parseCents(next.Spent))
	}
	next.Spent, next.Forecast = formatCents(cents), ""
	if figures.Forecast != nil {
		next.Forecast = formatCents(max(*figures.Forecast/millionthsPerCent, cents))
	}
	if withPrices {
		next.Prices = updatePrices(next.Prices, figures.Prices)
	}
	at := metav1.NewTime(answer.Now.UTC().Truncate(time.Second))
	next.Observed = &at
}

// updatePrices returns the prices with the ledger's new ones, if they differ by 1 % or more: each change is a write of
// all namespaces of the tenant. The price of a pool without new pods stays.
func updatePrices(last map[string]string, ledger map[string]int64) map[string]string {
	prices := maps.Clone(last)
	for pool, price := range ledger {
		cents := price / millionthsPerCent
		present := parseCents(last[pool])
		if last[pool] != "" && max(cents-present, present-cents)*100 < present {
			continue
		}
		if prices == nil {
			prices = map[string]string{}
		}
		prices[pool] = formatCents(cents)
	}
	return prices
}

// findStage returns the stage at a part of the budget, and the percentage at which it begins.
func findStage(b *v1alpha1.TenantBudget, percent int64) (v1alpha1.BudgetStage, int64) {
	var stage v1alpha1.BudgetStage
	var begin int64
	for key, one := range getStages(b) {
		if at, err := strconv.ParseInt(key, 10, 64); err == nil && at <= percent && at > begin {
			stage, begin = one, at
		}
	}
	return stage, begin
}

func getStages(b *v1alpha1.TenantBudget) map[string]v1alpha1.BudgetStage {
	if len(b.At) == 0 {
		return defaultStages
	}
	return b.At
}

// keepStage keeps the last stage of the same budget while the cost is less than the margin below it.
func keepStage(b *v1alpha1.TenantBudget, next, last *v1alpha1.TenantBudgetStatus) {
	declared := getStages(b)[strconv.FormatInt(last.StagePercent, 10)] == last.Stage
	if declared && last.Monthly == next.Monthly && last.StagePercent > next.StagePercent && next.Percent >= last.StagePercent-margin {
		next.Stage, next.StagePercent = last.Stage, last.StagePercent
	}
}

// IsWorthWriting reports whether a new status differs from the present one by more than figures that round to
// the same percentages. The ledger's figures change each minute, and each write of a status reaches all
// who watch Tenants.
func IsWorthWriting(before, after *v1alpha1.TenantBudgetStatus) bool {
	if before == nil || after == nil {
		return before != after
	}
	return before.Month != after.Month || before.Monthly != after.Monthly || before.Currency != after.Currency ||
		before.Stage != after.Stage || before.StagePercent != after.StagePercent || before.StageSpent != after.StageSpent ||
		before.Problem != after.Problem || before.Percent != after.Percent || (before.Spent == "") != (after.Spent == "") ||
		countPercent(before.Forecast, before.Monthly) != countPercent(after.Forecast, after.Monthly) ||
		!maps.Equal(before.Prices, after.Prices)
}

// countPercent returns the part of a budget, rounded down, or -1 for no amount.
func countPercent(amount string, monthly int64) int64 {
	if amount == "" || monthly == 0 {
		return -1
	}
	return parseCents(amount) / monthly
}

// GetLeft returns the rest of the budget in the form of the status, and "" without figures. It is negative
// beyond the budget.
func GetLeft(s *v1alpha1.TenantBudgetStatus) string {
	if s == nil || s.Spent == "" {
		return ""
	}
	return formatCents(s.Monthly*centsPerUnit - parseCents(s.Spent))
}

// Describe returns the stage that is in force, and a sentence with its figures for the tenant's people. The
// figures are from the beginning of the stage, so that the namespaces change only with the stage.
func Describe(tenant, contact string, s *v1alpha1.TenantBudgetStatus) (v1alpha1.BudgetStage, string) {
	if s == nil || s.Stage == "" {
		return "", ""
	}
	text := fmt.Sprintf("tenant %s has spent %s of its %d %s for %s, at least %d %%", tenant, s.StageSpent, s.Monthly, s.Currency, s.Month, s.StagePercent)
	if contact != "" {
		text += "; contact: " + contact
	}
	return s.Stage, text
}

// DescribePrices returns the currency, the rest of the budget as a text for the tenant's people, and the price of a CPU
// for a month in each pool: "EUR;340 of 800 EUR left;apps=28.45;jobs=9.10". It returns "" without prices.
func DescribePrices(s *v1alpha1.TenantBudgetStatus) string {
	if s == nil || s.Spent == "" || len(s.Prices) == 0 {
		return ""
	}
	rest := fmt.Sprintf("its budget of %d %s is spent", s.Monthly, s.Currency)
	if left := s.Monthly*centsPerUnit - parseCents(s.Spent); left >= 0 {
		rest = fmt.Sprintf("%d of %d %s left", left/centsPerUnit, s.Monthly, s.Currency)
	}
	parts := []string{s.Currency, rest}
	for _, pool := range slices.Sorted(maps.Keys(s.Prices)) {
		parts = append(parts, pool+"="+s.Prices[pool])
	}
	return strings.Join(parts, ";")
}

// DescribeChange returns the note of an event about a new stage, and "" if the stage is the same.
func DescribeChange(tenant string, before, after *v1alpha1.TenantBudgetStatus) string {
	was, _ := Describe(tenant, "", before)
	now, text := Describe(tenant, "", after)
	switch {
	case was == now && (now == "" || before.Month == after.Month):
		return ""
	case now == "" && after != nil && before.Month != after.Month:
		return "a new month has begun: the stage " + string(was) + " has ended"
	case now == "":
		return "the stage " + string(was) + " has ended"
	default:
		return text + ": " + DescribeEffect(now)
	}
}

// DescribeEffect describes the effect of a stage.
func DescribeEffect(stage v1alpha1.BudgetStage) string {
	switch stage {
	case v1alpha1.BudgetDenyNewPods:
		return "new pods are refused; existing pods keep running"
	case v1alpha1.BudgetDenyNewNodes:
		return "new pods run on existing nodes only"
	default:
		return "changes of workloads get a warning"
	}
}

// ListStages returns the percentages of a budget with their stages, in order, such as "80 % Warn".
func ListStages(b *v1alpha1.TenantBudget) []string {
	stages := getStages(b)
	keys := slices.SortedFunc(maps.Keys(stages), func(x, y string) int {
		a, _ := strconv.Atoi(x)
		c, _ := strconv.Atoi(y)
		return a - c
	})
	all := make([]string, 0, len(keys))
	for _, key := range keys {
		all = append(all, key+" % "+string(stages[key]))
	}
	return all
}

// formatCents formats hundredths with two decimals.
func formatCents(cents int64) string {
	sign := ""
	if cents < 0 {
		sign, cents = "-", -cents
	}
	return fmt.Sprintf("%s%d.%02d", sign, cents/centsPerUnit, cents%centsPerUnit)
}

// parseCents reads an amount of formatCents. Only croft writes the status, so anything else is 0.
func parseCents(text string) int64 {
	cents, err := strconv.ParseInt(strings.Replace(text, ".", "", 1), 10, 64)
	if err != nil {
		return 0
	}
	return cents
}
