package price

import (
	"bytes"
	"fmt"
	"math/big"
	"regexp"

	"croft.dev/croft/internal/cost/money"
)

// metric is Karpenter's metric with its prices of all instances that a cloud offers.
const metric = "karpenter_cloudprovider_instance_type_offering_price_estimate"

// estimate identifies a price of Karpenter.
type estimate struct{ instanceType, capacityType, zone string }

var (
	sample = regexp.MustCompile(`^` + metric + `\{([^}]*)\}\s+(\S+)`)
	label  = regexp.MustCompile(`(\w+)="([^"]*)"`)
)

// AddEstimates adds Karpenter's prices from the text of its metrics. Karpenter sets 0 for
// reserved capacity that does not exist: such a price is unknown.
func (l *List) AddEstimates(name string, text []byte) error {
	l.estimates = map[estimate]*big.Rat{}
	for number, line := range bytes.Split(text, []byte("\n")) {
		match := sample.FindSubmatch(bytes.TrimSpace(line))
		if match == nil {
			continue
		}
		var e estimate
		for _, pair := range label.FindAllSubmatch(match[1], -1) {
			switch string(pair[1]) {
			case "instance_type":
				e.instanceType = string(pair[2])
			case "capacity_type":
				e.capacityType = string(pair[2])
			case "zone":
				e.zone = string(pair[2])
			}
		}
		rate, err := money.ParsePrice(string(match[2]))
		if err != nil {
			return fmt.Errorf("%s:%d: the price of %s %w", name, number+1, e.instanceType, err)
		}
		if rate.Sign() > 0 {
			l.estimates[e] = rate
		}
	}
	if len(l.estimates) == 0 {
		return fmt.Errorf("%s: the file has no metric %s; write the output of Karpenter's /metrics to it",
			name, metric)
	}
	return nil
}
