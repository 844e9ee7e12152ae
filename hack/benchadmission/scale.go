package main

import (
	"math"
	"slices"
)

// scale is a logarithmic axis. The figures lie between one millisecond and hundreds, and
// the smallest matter most.
type scale struct{ low, high float64 }

// smallest is the lower limit of the axis: smaller costs of a pod cannot be measured.
const smallest = 0.1

// mostTicks is the maximum number of labels on an axis.
const mostTicks = 9

// newScale returns a scale with round limits that contains all points.
func newScale(curves []curve) scale {
	low, high := math.Inf(1), smallest
	for _, c := range curves {
		for _, at := range c.points {
			low, high = min(low, at.value, at.low), max(high, at.value, at.hi)
		}
	}
	rounds := listRoundNumbers(smallest, max(high, 10*smallest)*10)
	s := scale{low: rounds[0]}
	for _, r := range rounds {
		if r <= low && !math.IsInf(low, 1) {
			s.low = r
		}
		if s.high < high {
			s.high = r
		}
	}
	s.high = max(s.high, 10*s.low)
	return s
}

// listRoundNumbers returns the numbers 1, 2, 5, 10, 20 and so on in a range.
func listRoundNumbers(from, to float64) []float64 {
	var all []float64
	for power := math.Floor(math.Log10(from)); ; power++ {
		for _, times := range []float64{1, 2, 5} {
			v := times * math.Pow(10, power)
			switch {
			case v > to*1.001:
				return all
			case v >= from*0.999:
				all = append(all, math.Round(v*1000)/1000)
			}
		}
	}
}

// listTicks returns the labels of the axis.
func (s scale) listTicks() []float64 {
	all := listRoundNumbers(s.low, s.high)
	if len(all) <= mostTicks {
		return all
	}
	return slices.DeleteFunc(all, func(v float64) bool {
		power := math.Log10(v)
		return v != s.high && math.Abs(power-math.Round(power)) > 0.001
	})
}

// computeShare returns the position of a value on the axis, from 0 to 1.
func (s scale) computeShare(v float64) float64 {
	return math.Log10(max(v, s.low)/s.low) / math.Log10(s.high/s.low)
}
