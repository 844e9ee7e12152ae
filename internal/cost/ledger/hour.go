package ledger

import (
	"fmt"
	"time"

	"croft.dev/croft/internal/cost/money"
)

const (
	secondsPerHour = 3600
	// HoursPerMonth is the month of clouds' prices: a twelfth of 365 days.
	HoursPerMonth = 730
)

// hour is an hour while it is computed.
type hour struct {
	*Ledger
	seconds
	rows      rowSet
	result    Hour
	explained bool
}

// Compute returns the cost of a span, which is an hour or a part of it.
func (l *Ledger) Compute(span Span) Hour { return l.compute(span, false) }

// Explain is like Compute, and also returns the divisions.
func (l *Ledger) Explain(span Span) Hour { return l.compute(span, true) }

func (l *Ledger) compute(span Span, explained bool) Hour {
	h := &hour{Ledger: l, seconds: span.toSeconds(), rows: rowSet{}, result: Hour{Span: span}, explained: explained}
	for i := range l.input.Nodes {
		h.addNode(&l.input.Nodes[i])
	}
	h.addLostPods()
	h.distributeIdle()
	h.addVolumes()
	for i := range l.input.LoadBalancers {
		h.addLoadBalancer(&l.input.LoadBalancers[i])
	}
	for _, row := range h.rows.sort() {
		row.roundUsage()
		h.result.Rows = append(h.result.Rows, *row)
	}
	return h.result
}

// WeightRule describes the division of a node and of the idle cost of its pool, for people.
var WeightRule = fmt.Sprintf("weight of requests = (thousandths of a CPU × %d + MiB × 1000) × seconds; "+
	"weight of idle = weight of the allocatable capacity - all requests", memoryPerCPU)

// computeWeight returns the weight of CPU, in thousandths, and memory, in MiB.
func computeWeight(cpu, memory int64) int64 { return cpu*memoryPerCPU + memory*1000 }

// ScaleToMonth returns the price of a CPU, or of as much memory as costs the same, for a month, by the cost of requests and
// their weight by WeightRule. It returns false for less than a CPU for a minute: rounding would distort the price.
func ScaleToMonth(cost money.Amount, weight int64) (price money.Amount, ok bool) {
	second := computeWeight(1000, 0)
	if weight < second*60 {
		return 0, false
	}
	return money.Scale(cost, second*secondsPerHour*HoursPerMonth, weight), true
}

// WeighRequests returns the weights of the row's CPU and of its memory by WeightRule. Both are 0 for capacity without
// requests, volumes and load balancers.
func (r *Row) WeighRequests() (cpu, memory int64) {
	return computeWeight(r.CPU, 0), computeWeight(0, r.Memory)
}

// addNode divides the cost of a node among its pods, and the capacity that they did not request.
func (h *hour) addNode(n *Node) {
	span := n.toSeconds().intersect(h.seconds)
	if span.length() == 0 {
		return
	}
	base := Key{Resource: NodeResource, Pool: n.Pool, CapacityType: n.CapacityType, InstanceType: n.InstanceType,
		PriceSource: n.Price.Source}
	rows := rowSet{}
	var used int64
	for _, i := range h.pods[n.Name] {
		pod := &h.input.Pods[i]
		// A pod cannot reserve more than the node has, even if it requests more.
		cpu, memory := min(pod.CPU, n.CPU), min(pod.Memory, n.Memory)
		for _, part := range h.splitByOwner(pod.Namespace, pod.toSeconds().intersect(span)) {
			row := rows.find(base.with(part, pod.Namespace, pod.Workload))
			row.CPU += cpu * part.length()
			row.Memory += memory * part.length()
			row.Weight += computeWeight(cpu, memory) * part.length()
			used += computeWeight(cpu, memory) * part.length()
			row.Unpriced += part.length()
			row.estimated = row.estimated || pod.Estimated || part.estimated
			row.addUsage(pod.Usage, part.seconds)
		}
	}
	rest := base
	rest.Kind = Unallocated
	idle, capacity := int64(1), computeWeight(n.CPU, n.Memory)*span.length()
	if capacity > 0 {
		rest.Kind, idle = Idle, max(capacity-used, 0)
	}
	if idle > 0 {
		row := rows.find(rest)
		row.Weight, row.Unpriced = idle, span.length()
	}
	h.divideNode(n, rows.sort(), span.length())
}

// with returns the key of an owner's workload.
func (k Key) with(owner ownedSpan, namespace, workload string) Key {
	k.Kind, k.Tenant, k.CostCode = owner.kind, owner.tenant, owner.costCode
	k.Namespace, k.Workload = namespace, workload
	return k
}

// divideNode divides the cost of a node among rows in proportion to their weights.
func (h *hour) divideNode(n *Node, rows []*Row, length int64) {
	cost := money.Scale(n.Price.Amount, length, secondsPerHour)
	if n.Price.Known {
		h.result.Nodes += cost
	}
	for i, part := range h.divide(cost, rows, func() string {
		return fmt.Sprintf("node %s (%s): %s per hour (%s) × %d/3600 s", n.Name,
			formatTitle(n.Pool, n.InstanceType, n.CapacityType), n.Price.Amount, n.Price.Source, length)
	}) {
		rows[i].Cost = part.Amount
	}
	for _, row := range rows {
		sum := h.rows.find(row.Key)
		sum.CPU += row.CPU
		sum.Memory += row.Memory
		sum.addUsageOf(row)
		if !n.Price.Known {
			sum.Unpriced += row.Unpriced
			continue
		}
		sum.Cost += row.Cost
		sum.Weight += row.Weight
		if n.Price.Estimated || row.estimated || row.Kind == Idle && n.Observed.Unix() > max(n.From.Unix(), h.from) {
			sum.EstimatedCost += row.Cost
		}
	}
}

// divide divides an amount among rows in proportion to their weights, and records the division.
func (h *hour) divide(amount money.Amount, rows []*Row, getTitle func() string) []money.Part {
	weights := make([]int64, len(rows))
	for i, row := range rows {
		weights[i] = row.Weight
	}
	parts := money.Divide(amount, weights)
	if !h.explained || amount == 0 {
		return parts
	}
	division := Division{Title: getTitle(), Amount: amount}
	for i, part := range parts {
		if part.Extra {
			part.Amount--
		}
		division.Shares = append(division.Shares, Share{rows[i].Key, weights[i], part})
	}
	h.result.Divisions = append(h.result.Divisions, division)
	return parts
}

// addLostPods adds the time of pods whose node is unknown, as time without a known cost.
func (h *hour) addLostPods() {
	for i := range h.input.Pods {
		pod := &h.input.Pods[i]
		span := pod.toSeconds().intersect(h.seconds)
		lost := span.length()
		for _, n := range h.nodes[pod.Node] {
			lost -= h.input.Nodes[n].toSeconds().intersect(span).length()
		}
		if lost > 0 {
			owner := h.splitByOwner(pod.Namespace, span)[0]
			h.rows.find(Key{Resource: NodeResource}.with(owner, pod.Namespace, pod.Workload)).Unpriced += lost
		}
	}
}

// distributeIdle divides the idle cost of each pool among the workloads of this pool, in proportion
// to their requests. The idle cost of a pool without requests has no share.
func (h *hour) distributeIdle() {
	rows := h.rows.sort()
	for start := 0; start < len(rows); {
		end := start
		var idle, requested []*Row
		var amount, estimated money.Amount
		for ; end < len(rows) && rows[end].Pool == rows[start].Pool; end++ {
			switch row := rows[end]; row.Kind {
			case Idle:
				idle = append(idle, row)
				amount += row.Cost
				estimated += row.EstimatedCost
			case Tenant, Platform:
				requested = append(requested, row)
			case Unallocated: // it has a weight to divide a node, and no requests
			}
		}
		pool := rows[start].Pool
		shares := h.divide(amount, requested, func() string { return "idle cost of pool " + pool })
		for i, part := range shares {
			requested[i].Idle = part.Amount
			if estimated > 0 {
				requested[i].EstimatedIdle = part.Amount
			}
		}
		for _, row := range idle {
			if shares == nil {
				row.Idle, row.EstimatedIdle = row.Cost, row.EstimatedCost
			}
		}
		start = end
	}
}

// Split divides a period where clock hours begin.
func Split(period Span) []Span {
	var hours []Span
	for at := period.From; at.Before(period.Until); {
		next := at.Truncate(time.Hour).Add(time.Hour)
		if next.After(period.Until) {
			next = period.Until
		}
		hours = append(hours, Span{at, next})
		at = next
	}
	return hours
}
