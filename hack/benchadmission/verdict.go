package main

import "fmt"

// cheaper is the minimum factor by which Gatekeeper must be more expensive than native
// placement, at the largest size and for the same rules.
const cheaper = 5

// listVerdicts compare the figures with croft's claims: the native engine's cost does not grow with
// the number of tenants, it is at most a fifth of the cost of the same rules with Gatekeeper,
// and no pod is admitted unplaced. croft makes no claim about the bare recipe, which checks
// nothing; the comparison is only reported.
func (r report) listVerdicts() []string {
	var all []string
	if len(r.Growth) > 0 {
		all = append(all, r.describeGrowth())
	}
	for _, c := range r.Comparisons {
		if len(c.Sizes) == 0 {
			continue
		}
		last := c.Sizes[len(c.Sizes)-1]
		baseline, other := last.computeCost(native), last.computeCost(c.Name)
		word := "beside"
		if c.Name == onGatekeeper {
			word = formatVerdict(other.Median >= cheaper*baseline.Median)
		}
		all = append(all, fmt.Sprintf("%s: %s adds **%.2f ms** at %s, **%.1f×** what native adds in the same rounds",
			word, c.Name, other.Median, formatTenants(last.Tenants), other.Median/baseline.Median))
	}
	if slipped, kills := r.countUnplaced(); kills > 0 {
		all = append(all, fmt.Sprintf("%s: of the pods of croft's tenants **%d** got in unplaced while the engine was killed %d times",
			formatVerdict(slipped == 0), slipped, kills))
	}
	return all
}

func formatVerdict(isTrue bool) string {
	if isTrue {
		return "holds"
	}
	return "**does not hold**"
}

// describeGrowth reports whether native's cost grows with the number of tenants, or differs by no more
// than between two clusters of the smallest size.
func (r report) describeGrowth() string {
	first, last := r.Growth[0], r.Growth[len(r.Growth)-1]
	grows, noise := last.compareCosts(), first.compareCosts()
	for _, g := range r.Growth[1:] {
		if d := g.compareCosts(); g.Tenants == first.Tenants {
			noise.Low, noise.High = min(noise.Low, d.Low), max(noise.High, d.High)
		}
	}
	isWithin, summary := grows.Low <= noise.High, "within noise"
	if !isWithin {
		summary = "more than noise"
	}
	few, many := computeInterval(computeAdded(last.Few, native)), computeInterval(computeAdded(last.Many, native))
	return fmt.Sprintf("%s: native adds **%.2f ms** at %s, **%.2f×** the %.2f ms that it adds at %s in the same rounds: %+.2f ms (%+.2f to %+.2f), where two clusters of %s each differ by %+.2f to %+.2f ms: %s",
		formatVerdict(isWithin), many.Median, formatTenants(last.Tenants), many.Median/few.Median, few.Median, formatTenants(first.Tenants),
		grows.Median, grows.Low, grows.High, formatTenants(first.Tenants), noise.Low, noise.High, summary)
}

// countUnplaced returns the number of pods of croft's tenants that were admitted unplaced, in
// any scenario.
func (r report) countUnplaced() (unplaced, kills int) {
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

func formatTenants(count int) string {
	if count == 1 {
		return "1 tenant"
	}
	if count >= 1000 {
		return fmt.Sprintf("%d,%03d tenants", count/1000, count%1000)
	}
	return fmt.Sprintf("%d tenants", count)
}
