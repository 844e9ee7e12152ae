package price

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/big"
	"regexp"
	"strconv"

	"croft.dev/croft/internal/cost/money"
)

// metric is Karpenter's metric with its prices of all instances that a cloud offers.
const metric = "karpenter_cloudprovider_instance_type_offering_price_estimate"

// estimate identifies a price of Karpenter.
type estimate struct{ instanceType, capacityType, zone string }

// Size is the whole CPU of an instance type, in thousandths, and its whole memory, in MiB. Pods get
// less, since the system of a node reserves a part.
type Size struct{ CPU, Memory int64 }

var (
	sample     = regexp.MustCompile(`^` + metric + `\{([^}]*)\}\s+(\S+)`)
	sizeSample = regexp.MustCompile(`^karpenter_cloudprovider_instance_type_(cpu_cores|memory_bytes)\{instance_type="([^"]*)"\}\s+(\S+)`)
	label      = regexp.MustCompile(`(\w+)="([^"]*)"`)
)

// maxSize is the maximum number of CPUs, and of bytes, of an instance type.
const maxSize = 1 << 50

// AddEstimates adds Karpenter's prices from the text of its metrics, and the sizes of instance types, which
// only its provider for AWS writes. Karpenter sets 0 for reserved capacity that does not exist: such a price
// is unknown.
func (l *List) AddEstimates(name string, text []byte) error {
	l.estimates, l.sizes = map[estimate]*big.Rat{}, map[string]Size{}
	for number, line := range bytes.Split(text, []byte("\n")) {
		line = bytes.TrimSpace(line)
		if err := l.addSize(line); err != nil {
			return fmt.Errorf("%s:%d: %w", name, number+1, err)
		}
		match := sample.FindSubmatch(line)
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

// addSize adds the CPU or the memory of an instance type, if the line has one.
func (l *List) addSize(line []byte) error {
	match := sizeSample.FindSubmatch(line)
	if match == nil {
		return nil
	}
	name := string(match[2])
	value, err := strconv.ParseFloat(string(match[3]), 64)
	if err != nil || math.IsNaN(value) || value < 0 || value >= maxSize {
		return errors.New("the size of " + name + " must be a number from 0 to 2^50")
	}
	size := l.sizes[name]
	if string(match[1]) == "cpu_cores" {
		size.CPU = int64(value * 1000)
	} else {
		size.Memory = int64(value) >> 20
	}
	l.sizes[name] = size
	return nil
}

// Sizes returns the sizes of instance types by name, from Karpenter's metrics.
func (l *List) Sizes() map[string]Size { return l.sizes }

// IsOffered reports whether the cloud sells an instance, as far as is known: without Karpenter's metrics,
// it may sell each.
func (l *List) IsOffered(o Offering) bool {
	return len(l.estimates) == 0 || l.estimates[estimate{o.InstanceType, o.CapacityType, o.Zone}] != nil
}
