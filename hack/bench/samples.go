package main

import (
	"math"
	"slices"
)

// percentile returns the smallest sample that p percent of all do not exceed;
// zero if there are none.
func percentile(p float64, samples []float64) float64 {
	if len(samples) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(samples))
	rank := int(math.Ceil(p / 100 * float64(len(sorted))))
	return sorted[max(rank, 1)-1]
}

func median(samples []float64) float64 { return percentile(50, samples) }

// mean is for rounds so few that a median would leave some of them out.
func mean(samples []float64) float64 {
	sum := 0.0
	for _, s := range samples {
		sum += s
	}
	return sum / float64(max(len(samples), 1))
}
