// Package reconcile compares a cloud's bill with the ledger, by cost code, and finds the causes of the
// differences. It does no I/O.
package reconcile

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"croft.dev/croft/internal/cost/bill"
	"croft.dev/croft/internal/cost/ledger"
	"croft.dev/croft/internal/cost/money"
	"croft.dev/croft/internal/cost/report"
)

// Causes of differences.
const (
	// Discount is a reduction of list prices that the ledger's prices lack.
	Discount = "discount"
	// OtherServices are costs that the ledger does not contain, such as traffic and taxes.
	OtherServices = "other services"
	// NodeDisks are the disks of nodes, which the ledger does not contain.
	NodeDisks = "disks of nodes"
	// SharedPools are costs that the bill contains for the cost code of a pool, and the ledger for the
	// cost codes of the tenants that use this pool.
	SharedPools = "shared pools"
	// Untagged are costs without a tag in the bill.
	Untagged = "untagged"
	// Rounding is at most a millionth for each line and hour of the bill, and for each row of the ledger.
	Rounding = "rounding"
	// Unexplained is the rest.
	Unexplained = "unexplained"
)

// noCode is the name of the line for costs without a cost code.
const noCode = "(no cost code)"

// Result is a comparison.
type Result struct {
	From     time.Time `json:"from"`
	Until    time.Time `json:"until"`
	Currency string    `json:"currency"`
	// Form is the form of the bill.
	Form  string  `json:"form"`
	Lines []*Line `json:"lines"`
	Total *Line   `json:"total"`
	// Limits describe the costs that were not compared.
	Limits []string `json:"limits"`
}

// Line compares the cost of one cost code.
type Line struct {
	CostCode string       `json:"costCode"`
	Bill     money.Amount `json:"bill"`
	Croft    money.Amount `json:"croft"`
	// Difference is Croft - Bill. The sum of the causes is the difference.
	Difference money.Amount `json:"difference"`
	Causes     []Cause      `json:"causes"`
}

// Cause is a part of a difference.
type Cause struct {
	Cause  string       `json:"cause"`
	Amount money.Amount `json:"amount"`
}

const day = 24 * time.Hour

// FindPeriod returns the complete days of a bill until now.
func FindPeriod(b *bill.Bill, now time.Time) (ledger.Span, error) {
	period := ledger.Span{From: b.From.Add(day - 1).Truncate(day), Until: b.Until.Truncate(day)}
	if today := now.UTC().Truncate(day); period.Until.After(today) {
		period.Until = today
	}
	if !period.From.Before(period.Until) {
		return period, fmt.Errorf("the bill has no complete day before today: it contains usage from %s until %s",
			b.From.Format(time.RFC3339), b.Until.Format(time.RFC3339))
	}
	return period, nil
}

// code are the costs of one cost code.
type code struct {
	// billed are the amounts after discounts, list the amounts at list prices.
	billed, list map[bill.Class]money.Amount
	// croft are the ledger's amounts.
	croft map[bill.Class]money.Amount
	// moved is the part of croft that the bill contains for the cost codes of pools.
	moved     money.Amount
	roundings int64
	causes    map[string]money.Amount
}

// Comparison adds up both sides. Charges are added one by one, since there may be many.
type Comparison struct {
	bill   *bill.Bill
	period ledger.Span
	codes  map[string]*code
	// pools are the cost codes of pools in the bill.
	pools map[string]string
	// outside is the part of the bill that is not within the period.
	outside money.Amount
}

// New begins the comparison of a bill in a period of whole days.
func New(b *bill.Bill, period ledger.Span) *Comparison {
	c := &Comparison{bill: b, period: period, codes: map[string]*code{}, pools: map[string]string{}}
	sums := map[sumKey]*bill.Sums{}
	poolCosts := map[[2]string]*money.Decimal{}
	var outside money.Decimal
	for key, s := range b.Sums {
		if key.From < period.From.Unix() || key.Until > period.Until.Unix() {
			outside.Add(&s.Effective)
			continue
		}
		at := sumKey{key.CostCode, key.Class}
		if sums[at] == nil {
			sums[at] = &bill.Sums{}
		}
		sums[at].Effective.Add(&s.Effective)
		sums[at].List.Add(&s.List)
		sums[at].Roundings += s.Roundings
		if key.Class == bill.Nodes && key.Pool != "" {
			of := [2]string{key.Pool, key.CostCode}
			if poolCosts[of] == nil {
				poolCosts[of] = &money.Decimal{}
			}
			poolCosts[of].Add(&s.Effective)
		}
	}
	c.outside = outside.Round()
	for at, s := range sums {
		of := c.find(at.costCode)
		of.billed[at.class], of.list[at.class] = s.Effective.Round(), s.List.Round()
		of.roundings += s.Roundings
	}
	c.findPools(poolCosts)
	return c
}

type sumKey struct {
	costCode string
	class    bill.Class
}

// findPools finds the cost code of each pool: of several, the one with the largest cost.
func (c *Comparison) findPools(costs map[[2]string]*money.Decimal) {
	largest := map[string]money.Amount{}
	for _, of := range slices.SortedFunc(maps.Keys(costs), func(a, b [2]string) int {
		return cmp.Or(strings.Compare(a[0], b[0]), strings.Compare(a[1], b[1]))
	}) {
		cost := costs[of].Round()
		if _, found := c.pools[of[0]]; !found || cost > largest[of[0]] {
			c.pools[of[0]], largest[of[0]] = of[1], cost
		}
	}
}

func (c *Comparison) find(name string) *code {
	if c.codes[name] == nil {
		c.codes[name] = &code{billed: map[bill.Class]money.Amount{}, list: map[bill.Class]money.Amount{},
			croft: map[bill.Class]money.Amount{}, causes: map[string]money.Amount{}}
	}
	return c.codes[name]
}

// classes are the bill's classes of the ledger's resources.
var classes = map[ledger.Resource]bill.Class{
	ledger.NodeResource: bill.Nodes, ledger.VolumeResource: bill.Volumes, ledger.LoadBalancerResource: bill.LoadBalancers,
}

// CheckCurrency returns an error if the amounts of the ledger and of the bill cannot be compared.
func (c *Comparison) CheckCurrency(currency string) error {
	if c.bill.Currency != "" && currency != c.bill.Currency {
		return fmt.Errorf("the bill is in %s, and croft's prices are in %s: set the currency of the prices", c.bill.Currency, currency)
	}
	return nil
}

// Add adds a charge of the ledger, if it is within the period.
func (c *Comparison) Add(charge *report.Charge) error {
	if charge.From.Before(c.period.From) || charge.Until.After(c.period.Until) {
		return nil
	}
	class := classes[charge.Resource]
	of := c.find(charge.CostCode)
	of.croft[class] += charge.Total()
	of.roundings++
	if pool, found := c.pools[charge.Pool]; found && class == bill.Nodes && pool != charge.CostCode {
		of.moved += charge.Total()
		c.find(pool).moved -= charge.Total()
	}
	return nil
}

// Finish finds the causes. limits are the ledger's.
func (c *Comparison) Finish(limits []string) *Result {
	r := &Result{From: c.period.From, Until: c.period.Until, Currency: c.bill.Currency, Form: c.bill.Form,
		Lines: []*Line{}, Total: &Line{CostCode: "total"}, Limits: slices.Clone(limits)}
	for name, of := range c.codes {
		of.explainSimple(name)
	}
	c.explainUntagged()
	total := map[string]money.Amount{}
	for _, name := range slices.Sorted(maps.Keys(c.codes)) {
		of := c.codes[name]
		of.explainRest(name)
		line := of.toLine(cmp.Or(name, noCode))
		r.Lines = append(r.Lines, line)
		r.Total.Bill += line.Bill
		r.Total.Croft += line.Croft
		for cause, amount := range of.causes {
			total[cause] += amount
		}
	}
	slices.SortStableFunc(r.Lines, func(a, b *Line) int {
		return cmp.Or(compareBool(a.CostCode == noCode, b.CostCode == noCode), cmp.Compare(b.Bill, a.Bill))
	})
	r.Total.Difference, r.Total.Causes = r.Total.Croft-r.Total.Bill, listCauses(total)
	if c.outside != 0 {
		r.Limits = append(r.Limits, fmt.Sprintf("%s of the bill is for times outside of these days, and is not compared", c.outside.Format(4)))
	}
	return r
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	default:
		return -1
	}
}

// sumCompared adds up the classes that the ledger has.
func sumCompared(amounts map[bill.Class]money.Amount) money.Amount {
	return amounts[bill.Nodes] + amounts[bill.Volumes] + amounts[bill.LoadBalancers]
}

// sumBill returns the whole bill of a cost code.
func (c *code) sumBill() (sum money.Amount) {
	for _, amount := range c.billed {
		sum += amount
	}
	return sum
}

// explainSimple finds the causes that do not depend on other cost codes.
func (c *code) explainSimple(name string) {
	c.causes[OtherServices] -= c.billed[bill.Other]
	c.causes[NodeDisks] -= c.billed[bill.NodeVolumes]
	c.causes[SharedPools] += c.moved
	if name != "" && len(c.croft) == 0 && c.moved == 0 {
		// Another cluster, or other workloads, in the same account.
		c.causes[OtherServices] -= sumCompared(c.billed) + c.billed[bill.Discounts]
	}
}

// findRest returns the part of the difference without a cause.
func (c *code) findRest() money.Amount {
	rest := sumCompared(c.croft) - c.sumBill()
	for _, amount := range c.causes {
		rest -= amount
	}
	return rest
}

// explainUntagged finds costs that the ledger has for a cost code, and the bill without a tag: volumes and load
// balancers have a cost code only if a StorageClass or a controller sets the tag.
func (c *Comparison) explainUntagged() {
	untagged := c.codes[""]
	if untagged == nil {
		return
	}
	for _, class := range []bill.Class{bill.Nodes, bill.Volumes, bill.LoadBalancers} {
		moved := money.Amount(0)
		if class == bill.Nodes {
			moved = untagged.moved
		}
		available := untagged.billed[class] - (untagged.croft[class] - moved)
		for _, name := range slices.Sorted(maps.Keys(c.codes)) {
			of := c.codes[name]
			lacking := of.croft[class] - of.list[class]
			if class == bill.Nodes {
				lacking -= of.moved
			}
			if amount := min(lacking, available); name != "" && amount > money.Amount(of.roundings) {
				of.causes[Untagged] += amount
				untagged.causes[Untagged] -= amount
				available -= amount
			}
		}
		// The rest is not in the ledger, such as the disks of instances without tags.
		if available > money.Amount(untagged.roundings) {
			untagged.causes[Untagged] -= available
		}
	}
}

// explainRest explains the rest by discounts and rounding, within their limits.
func (c *code) explainRest(name string) {
	discount := sumCompared(c.list) - sumCompared(c.billed) - c.billed[bill.Discounts]
	if part := min(c.findRest(), discount); part > 0 {
		c.causes[Discount] += part
	}
	rest := c.findRest()
	limit := money.Amount(c.roundings)
	switch {
	case rest >= -limit && rest <= limit:
		c.causes[Rounding] += rest
	case name == "" && rest < 0:
		c.causes[Untagged] += rest
	default:
		c.causes[Unexplained] += rest
	}
}

func (c *code) toLine(name string) *Line {
	line := &Line{CostCode: name, Bill: c.sumBill(), Croft: sumCompared(c.croft), Causes: listCauses(c.causes)}
	line.Difference = line.Croft - line.Bill
	return line
}

// listCauses returns the causes, the largest first.
func listCauses(amounts map[string]money.Amount) []Cause {
	causes := []Cause{}
	for cause, amount := range amounts {
		if amount != 0 {
			causes = append(causes, Cause{cause, amount})
		}
	}
	slices.SortFunc(causes, func(a, b Cause) int {
		return cmp.Or(cmp.Compare(abs(b.Amount), abs(a.Amount)), strings.Compare(a.Cause, b.Cause))
	})
	return causes
}

func abs(a money.Amount) money.Amount { return max(a, -a) }
