package ledger

import (
	"fmt"
	"math/big"
	"time"

	"croft.dev/croft/internal/cost/money"
)

// checkHour compares an hour with the input, by fractions of any size and by other code than the
// ledger's.
func checkHour(in Input, hour Hour) error {
	var rows, idle, shares money.Amount
	for _, row := range hour.Rows {
		rows += row.Cost
		shares += row.Idle
		if row.Kind == Idle {
			idle += row.Cost
		}
		if row.Cost < 0 || row.Idle < 0 || row.EstimatedCost > row.Cost || row.EstimatedIdle > row.Idle {
			return fmt.Errorf("amounts out of range: %+v", row)
		}
	}
	if whole := hour.Nodes + hour.Volumes + hour.LoadBalancers; rows != whole {
		return fmt.Errorf("the rows are %d, and nodes, volumes and load balancers %d", rows, whole)
	}
	if shares != idle {
		return fmt.Errorf("the shares of idle cost are %d, and idle cost is %d", shares, idle)
	}
	for _, side := range []struct {
		name  string
		got   money.Amount
		exact *big.Rat
		parts int
	}{
		{"nodes", hour.Nodes, sumNodes(in), len(in.Nodes)},
		{"volumes", hour.Volumes, sumVolumes(in), len(in.Volumes)},
		{"load balancers", hour.LoadBalancers, sumLoadBalancers(in), len(in.LoadBalancers)},
	} {
		if !isNear(side.got, side.exact, side.parts) {
			return fmt.Errorf("%s cost %d, and exactly %s", side.name, side.got, side.exact.FloatString(3))
		}
	}
	exact := sumRequests(in)
	for _, row := range hour.Rows {
		if row.Resource != NodeResource || row.Kind == Unallocated {
			continue
		}
		want := exact[row.Key]
		if want == nil {
			want = new(big.Rat)
		}
		// Each node rounds its cost once, and each share by less than a millionth.
		if !isNear(row.Cost, want, 3*len(in.Nodes)) {
			return fmt.Errorf("%+v costs exactly %s", row, want.FloatString(3))
		}
		delete(exact, row.Key)
	}
	for key, amount := range exact {
		if amount.Sign() != 0 {
			return fmt.Errorf("no row for %+v, which costs %s", key, amount.FloatString(3))
		}
	}
	return nil
}

// isNear reports whether an amount differs from an exact one by at most half a millionth for each
// part.
func isNear(got money.Amount, exact *big.Rat, parts int) bool {
	difference := new(big.Rat).Sub(big.NewRat(int64(got), 1), exact)
	return difference.Abs(difference).Cmp(big.NewRat(int64(parts), 2)) <= 0
}

// countSeconds counts the seconds of the hour that belong to all spans, one by one.
func countSeconds(spans ...Span) int64 {
	from, until := whole.From, whole.Until
	for _, s := range spans {
		if s.From.After(from) {
			from = s.From
		}
		if !s.Until.IsZero() && s.Until.Before(until) {
			until = s.Until
		}
	}
	return max(int64(until.Sub(from)/time.Second), 0)
}

func sumNodes(in Input) *big.Rat {
	sum := new(big.Rat)
	for _, n := range in.Nodes {
		if n.Price.Known {
			sum.Add(sum, big.NewRat(int64(n.Price.Amount)*countSeconds(n.Span), 3600))
		}
	}
	return sum
}

func sumVolumes(in Input) *big.Rat {
	sum := new(big.Rat)
	for _, v := range in.Volumes {
		gib := big.NewRat(v.Size, 1024)
		gib.Mul(gib, big.NewRat(int64(v.Price.Amount)*countSeconds(v.Span), 730*3600))
		sum.Add(sum, gib)
	}
	return sum
}

func sumLoadBalancers(in Input) *big.Rat {
	sum := new(big.Rat)
	for _, b := range in.LoadBalancers {
		sum.Add(sum, big.NewRat(int64(b.Price.Amount)*countSeconds(b.Span), 3600))
	}
	return sum
}

// sumRequests returns the exact cost of each row of nodes.
func sumRequests(in Input) map[Key]*big.Rat {
	all := map[Key]*big.Rat{}
	for _, n := range in.Nodes {
		if !n.Price.Known || n.CPU == 0 {
			continue
		}
		base := Key{Resource: NodeResource, Pool: n.Pool, CapacityType: n.CapacityType, InstanceType: n.InstanceType,
			PriceSource: n.Price.Source}
		used, weights := int64(0), map[Key]int64{}
		for _, p := range in.Pods {
			if p.Node != n.Name {
				continue
			}
			weigh := func(seconds int64) int64 { return (min(p.CPU, n.CPU)*9*1024 + min(p.Memory, n.Memory)*1000) * seconds }
			key := base
			key.Namespace, key.Workload = p.Namespace, p.Workload
			owned := int64(0)
			for _, o := range in.Owners {
				if o.Namespace != p.Namespace {
					continue
				}
				seconds := countSeconds(n.Span, p.Span, o.Span)
				key.Kind, key.Tenant, key.CostCode = Tenant, o.Tenant, o.CostCode
				weights[key] += weigh(seconds)
				owned += seconds
			}
			rest := countSeconds(n.Span, p.Span) - owned
			key.Kind, key.Tenant, key.CostCode = Platform, "", ""
			weights[key] += weigh(rest)
			used += weigh(owned + rest)
		}
		base.Kind = Idle
		capacity := (n.CPU*9*1024 + n.Memory*1000) * countSeconds(n.Span)
		weights[base] = max(capacity-used, 0)
		for key, weight := range weights {
			if weight == 0 {
				continue
			}
			if all[key] == nil {
				all[key] = new(big.Rat)
			}
			part := big.NewRat(int64(n.Price.Amount)*countSeconds(n.Span), 3600)
			all[key].Add(all[key], part.Mul(part, big.NewRat(weight, max(capacity, used))))
		}
	}
	return all
}
