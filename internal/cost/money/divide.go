package money

import (
	"cmp"
	"math/bits"
	"slices"
)

// Divide divides an amount in proportion to weights, by the largest remainder method: each part
// is rounded down, and the parts with the largest remainders get one of the remaining
// millionths each. Of two parts with the same remainder, the earlier precedes. The sum of the
// parts is the amount. Without a positive weight, there are no parts.
func Divide(amount Amount, weights []int64) []Part {
	var sum uint64
	for _, weight := range weights {
		sum += uint64(weight) //nolint:gosec // no weight is negative
	}
	if sum == 0 {
		return nil
	}
	parts := make([]Part, len(weights))
	order := make([]int, len(weights))
	rest := amount
	for i, weight := range weights {
		high, low := bits.Mul64(uint64(amount), uint64(weight)) //nolint:gosec // neither is negative
		quotient, remainder := bits.Div64(high, low, sum)
		parts[i] = Part{Amount: Amount(quotient), Remainder: remainder} //nolint:gosec // at most amount
		rest -= parts[i].Amount
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(parts[b].Remainder, parts[a].Remainder) })
	for _, i := range order[:rest] {
		parts[i].Amount++
		parts[i].Extra = true
	}
	return parts
}
