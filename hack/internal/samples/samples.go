// Package samples computes statistics of samples.
package samples

import (
	"math"
	"slices"
)

// Percentile returns the smallest sample that p percent of all samples do not exceed, or zero
// if there are none.
func Percentile(p float64, samples []float64) float64 {
	if len(samples) == 0 {
		return 0
	}
	rank := int(math.Ceil(p / 100 * float64(len(samples))))
	return getRanked(slices.Sorted(slices.Values(samples)), rank)
}

// Median returns the sample in the middle.
func Median(samples []float64) float64 { return Percentile(50, samples) }

// Mean returns the arithmetic mean. It is for so few rounds that a median would ignore some of
// them.
func Mean(samples []float64) float64 {
	sum := 0.0
	for _, s := range samples {
		sum += s
	}
	return sum / float64(max(len(samples), 1))
}

// MedianInterval returns the 95% confidence interval of the median. It assumes no
// distribution: the number of samples below the median is binomial.
func MedianInterval(samples []float64) (low, high float64) {
	if len(samples) == 0 {
		return 0, 0
	}
	sorted := slices.Sorted(slices.Values(samples))
	n := float64(len(sorted))
	half := 1.96 * math.Sqrt(n) / 2
	return getRanked(sorted, int(math.Floor(n/2-half))), getRanked(sorted, int(math.Ceil(n/2+half))+1)
}

// Differences returns the difference of each pair of samples.
func Differences(samples, others []float64) []float64 {
	all := make([]float64, min(len(samples), len(others)))
	for i := range all {
		all[i] = samples[i] - others[i]
	}
	return all
}

// getRanked returns the sample with a rank, counted from one.
func getRanked(sorted []float64, rank int) float64 {
	return sorted[min(max(rank, 1), len(sorted))-1]
}
