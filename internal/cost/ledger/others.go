package ledger

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"croft.dev/croft/internal/cost/money"
	"croft.dev/croft/internal/cost/price"
)

// class is all volumes with the same StorageClass and price.
type class struct {
	name  string
	price price.Price
}

// addVolumes divides the cost of each class of volumes, in proportion to sizes and seconds. The cost
// of a class is rounded once: a small volume costs only some millionths an hour.
func (h *hour) addVolumes() {
	classes := map[class]rowSet{}
	for i := range h.input.Volumes {
		v := &h.input.Volumes[i]
		span := v.toSeconds().intersect(h.seconds)
		of := class{v.Class, v.Price}
		if classes[of] == nil {
			classes[of] = rowSet{}
		}
		base := Key{Resource: VolumeResource, InstanceType: v.Class, PriceSource: v.Price.Source}
		parts := h.splitByOwner(v.Namespace, span)
		if v.Namespace == "" && span.length() > 0 {
			parts = []ownedSpan{{seconds: span, kind: Unallocated}}
		}
		for _, part := range parts {
			row := classes[of].find(base.with(part, v.Namespace, v.Workload))
			row.Weight += v.Size * part.length()
			row.Unpriced += part.length()
			row.estimated = row.estimated || part.estimated
		}
	}
	order := make([]class, 0, len(classes))
	for of := range classes {
		order = append(order, of)
	}
	slices.SortFunc(order, func(a, b class) int {
		return cmp.Or(strings.Compare(a.name, b.name), strings.Compare(a.price.Source, b.price.Source),
			cmp.Compare(a.price.Amount, b.price.Amount))
	})
	for _, of := range order {
		h.result.Volumes += h.addRows(of.price, classes[of].sort(), func(size int64) (money.Amount, string) {
			return money.Scale(of.price.Amount, size, HoursPerMonth*secondsPerHour<<10),
				fmt.Sprintf("volumes of class %s: %s per GiB and month (%s) × %d MiB s / (1024 × 730 × 3600 s)",
					of.name, of.price.Amount, of.price.Source, size)
		})
	}
}

// addLoadBalancer adds the cost of a load balancer, which is divided only if its owner changes.
func (h *hour) addLoadBalancer(b *LoadBalancer) {
	rows := rowSet{}
	base := Key{Resource: LoadBalancerResource, PriceSource: b.Price.Source}
	for _, part := range h.splitByOwner(b.Namespace, b.toSeconds().intersect(h.seconds)) {
		row := rows.find(base.with(part, b.Namespace, b.Workload))
		row.Weight += part.length()
		row.Unpriced += part.length()
		row.estimated = row.estimated || part.estimated
	}
	h.result.LoadBalancers += h.addRows(b.Price, rows.sort(), func(length int64) (money.Amount, string) {
		return money.Scale(b.Price.Amount, length, secondsPerHour),
			fmt.Sprintf("load balancer of %s in %s: %s per hour (%s) × %d/3600 s", b.Workload, b.Namespace,
				b.Price.Amount, b.Price.Source, length)
	})
}

// addRows divides a cost among rows, adds them to the hour, and returns the cost. getCost returns the
// cost of all weights together, and its description.
func (h *hour) addRows(p price.Price, rows []*Row, getCost func(weight int64) (money.Amount, string)) money.Amount {
	var sum int64
	for _, row := range rows {
		sum += row.Weight
	}
	cost, title := getCost(sum)
	parts := h.divide(cost, rows, func() string { return title })
	for i, row := range rows {
		total := h.rows.find(row.Key)
		if !p.Known {
			total.Unpriced += row.Unpriced
			continue
		}
		if parts == nil {
			continue
		}
		total.Cost += parts[i].Amount
		total.Weight += row.Weight
		if p.Estimated || row.estimated {
			total.EstimatedCost += parts[i].Amount
		}
	}
	return cost
}
