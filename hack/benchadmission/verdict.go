package main

import "fmt"

// cheaper is how many times what native placement adds Gatekeeper must add at
// least, at the largest size.
const cheaper = 5

// verdicts are what the figures say of what croft promises: that the native
// engine's cost does not grow with the tenants, that it is at most a fifth of
// Gatekeeper's, and that no pod gets in unplaced.
func (r report) verdicts() []string {
	var all []string
	for _, c := range r.Comparisons {
		if len(c.Sizes) == 0 {
			continue
		}
		first, last := c.Sizes[0], c.Sizes[len(c.Sizes)-1]
		one, many := first.steady(), last.steady()
		if last.Tenants > first.Tenants {
			all = append(all, fmt.Sprintf("%s: native adds **%.2f ms** at %s (%.2f–%.2f), **%.2f×** the %.2f ms (%.2f–%.2f) that it adds at %s: %s",
				judge(many.Low <= one.High), many.Median, tenantsIn(last.Tenants), many.Low, many.High,
				many.Median/one.Median, one.Median, one.Low, one.High, tenantsIn(first.Tenants), noise(one, many)))
		}
		beside, other := last.cost(native), last.cost(c.Name)
		all = append(all, fmt.Sprintf("%s: %s adds **%.2f ms** at %s, **%.1f×** what native adds beside it",
			judge(other.Median >= cheaper*beside.Median), c.Name, other.Median, tenantsIn(last.Tenants), other.Median/beside.Median))
	}
	if slipped, kills := r.slipped(); kills > 0 {
		all = append(all, fmt.Sprintf("%s: of the pods of croft's tenants **%d** got in unplaced while the engine was killed %d times",
			judge(slipped == 0), slipped, kills))
	}
	return all
}

func judge(holds bool) string {
	if holds {
		return "holds"
	}
	return "**does not hold**"
}

// noise says whether two costs can be told apart.
func noise(one, many cost) string {
	switch {
	case many.Low > one.High:
		return "more than noise"
	case many.High < one.Low:
		return "less, if anything"
	default:
		return "within noise"
	}
}

// slipped is how many pods of croft's tenants got in unplaced, whatever was killed.
func (r report) slipped() (unplaced, kills int) {
	for _, c := range r.Comparisons {
		for _, k := range c.Kills {
			if k.Line == native || k.Line == onGatekeeper {
				unplaced += k.Unplaced
				kills += k.Kills
			}
		}
	}
	return unplaced, kills
}

func tenantsIn(count int) string {
	if count == 1 {
		return "1 tenant"
	}
	if count >= 1000 {
		return fmt.Sprintf("%d,%03d tenants", count/1000, count%1000)
	}
	return fmt.Sprintf("%d tenants", count)
}
