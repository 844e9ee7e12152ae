// Package price finds the prices of instances, volumes and load balancers: in the platform's file of
// prices, in Karpenter's estimates, and in a table of AWS's on-demand prices. Each price names its
// source. A price that no source has is unknown, and never zero. It does no I/O.
package price

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"

	"croft.dev/croft/internal/cost/money"
)

// dollar is the currency of Karpenter's estimates and of the table.
const dollar = "USD"

// List has all known prices. Its zero value has only the table's prices, in US dollars; New
// returns it.
type List struct {
	// Currency is the currency of all prices that the list returns.
	Currency string
	file     string
	// perDollar is the price of a US dollar in Currency, and day the day of this rate.
	perDollar *big.Rat
	day       string
	// instances are by type and capacity type, factors by pool and capacity type.
	instances, factors map[string]map[string]*big.Rat
	volumes            map[string]*big.Rat
	loadBalancer       *big.Rat
	estimates          map[estimate]*big.Rat
	sizes              map[string]Size
}

// New returns a list with the table's prices.
func New() *List { return &List{Currency: dollar} }

// Price is one price with its source.
type Price struct {
	// Amount is the price of an hour. For a volume it is the price of a GiB for a month of 730
	// hours.
	Amount money.Amount
	// Known is false if no source has the price.
	Known bool
	// Estimated means that the true price may differ: it is another region's, or today's
	// price of a spot instance, which also counts for earlier hours.
	Estimated bool
	Source    string
}

// Offering is an instance as a cloud sells it.
type Offering struct {
	Pool, CapacityType, InstanceType, Zone, Region string
}

// FindInstance returns the price of an instance per hour.
func (l *List) FindInstance(o Offering) Price {
	rate, p := l.lookUp(o)
	if rate == nil {
		return Price{}
	}
	if factor := l.factors[o.Pool][o.CapacityType]; factor != nil {
		rate = new(big.Rat).Mul(rate, factor)
		p.Source += fmt.Sprintf(" × %s of pool %s in %s", formatRat(factor), o.Pool, l.file)
	}
	p.Amount, p.Known = money.Round(rate), true
	return p
}

// lookUp returns the price from the first source that has it, before the pool's factor.
func (l *List) lookUp(o Offering) (*big.Rat, Price) {
	if rate := l.instances[o.InstanceType][o.CapacityType]; rate != nil {
		return rate, Price{Source: l.file}
	}
	if rate := l.estimates[estimate{o.InstanceType, o.CapacityType, o.Zone}]; rate != nil {
		return l.convert(rate, Price{Source: "Karpenter's estimate", Estimated: o.CapacityType == spot})
	}
	rate := findOnDemand(o.InstanceType)
	foreign := strings.HasPrefix(o.Region, "cn-") || strings.HasPrefix(o.Region, "us-gov-")
	if o.CapacityType != onDemandType || rate == nil || foreign {
		return nil, Price{}
	}
	p := Price{Source: "AWS on-demand in " + tableRegion + " on " + tableDay}
	if o.Region != tableRegion {
		p.Estimated = true
	}
	return l.convert(rate, p)
}

// convert converts a price in US dollars to the list's currency.
func (l *List) convert(rate *big.Rat, p Price) (*big.Rat, Price) {
	if l.Currency == dollar {
		return rate, p
	}
	p.Source += fmt.Sprintf(" × %s %s/USD of %s", formatRat(l.perDollar), l.Currency, l.day)
	return new(big.Rat).Mul(rate, l.perDollar), p
}

// FindVolume returns the price of a GiB for a month, for volumes of a StorageClass.
func (l *List) FindVolume(class string) Price { return l.makePrice(l.volumes[class]) }

// FindLoadBalancer returns the price of a load balancer per hour.
func (l *List) FindLoadBalancer() Price { return l.makePrice(l.loadBalancer) }

func (l *List) makePrice(rate *big.Rat) Price {
	if rate == nil {
		return Price{}
	}
	return Price{Amount: money.Round(rate), Known: true, Source: l.file}
}

// findOnDemand returns the table's price, or nil.
func findOnDemand(instanceType string) *big.Rat {
	family, size, _ := strings.Cut(instanceType, ".")
	for _, entry := range strings.Fields(onDemand[family]) {
		if name, text, _ := strings.Cut(entry, ":"); name == size {
			if millionths, err := strconv.ParseInt(text, 10, 64); err == nil {
				return big.NewRat(millionths, int64(money.Unit))
			}
		}
	}
	return nil
}

// formatRat formats a decimal number without trailing zeros.
func formatRat(r *big.Rat) string {
	return strings.TrimSuffix(strings.TrimRight(r.FloatString(12), "0"), ".")
}
