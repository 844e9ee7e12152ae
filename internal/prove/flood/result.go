package flood

import (
	"cmp"
	"math"
	"slices"
)

// Result has the victim's operations before, during and after a flood.
type Result struct {
	Flood   string `json:"flood"`
	Summary string `json:"summary"`
	Before  Phase  `json:"before"`
	During  Phase  `json:"during"`
	After   Phase  `json:"after"`
	// Requests are the flood's.
	Requests *RequestCount `json:"requests"`
}

// ListAlone returns the durations of an operation without a flood.
func (r Result) ListAlone(o Operation) []float64 {
	return slices.Concat(r.Before.get(o).Seconds, r.After.get(o).Seconds)
}

// DescribeFailures returns notes about an operation's failures, if there are any. Failures alone lower the
// ratio.
func (r Result) DescribeFailures(o Operation) []string {
	return slices.Concat(
		r.During[o.Name].describeFailures("during the flood"),
		r.Before[o.Name].describeFailures("alone before"),
		r.After[o.Name].describeFailures("alone after"))
}

// Comparison compares an operation during a flood with the same operation alone.
type Comparison struct {
	Operation string  `json:"operation"`
	Alone     Summary `json:"alone"`
	During    Summary `json:"during"`
	// Ratio is the p99 during the flood, divided by the p99 alone, or zero if one of them was not measured.
	Ratio  float64 `json:"ratio"`
	Target float64 `json:"target"`
}

// IsGood reports whether the flood slowed the operation down by no more than its target.
func (c Comparison) IsGood() bool { return c.Ratio <= c.Target && c.During.Failures == 0 }

// Compare returns a comparison for each operation.
func (r Result) Compare() []Comparison {
	var all []Comparison
	for _, o := range Operations {
		before, after := r.Before.get(o), r.After.get(o)
		c := Comparison{
			Operation: o.Name, Target: o.Target, During: r.During.get(o).summarize(),
			Alone: (&Observation{Seconds: r.ListAlone(o), Failures: before.Failures + after.Failures, Failure: cmp.Or(before.Failure, after.Failure)}).summarize(),
		}
		if c.Alone.P99 > 0 {
			c.Ratio = c.During.P99 / c.Alone.P99
		}
		all = append(all, c)
	}
	return all
}

// Summary summarizes the durations of an operation, in seconds.
type Summary struct {
	P50      float64 `json:"p50Seconds"`
	P99      float64 `json:"p99Seconds"`
	Samples  int     `json:"samples"`
	Failures int     `json:"failures"`
	// Failure is the first failure.
	Failure string `json:"failure,omitempty"`
}

func (s *Observation) summarize() Summary {
	return Summary{P50: getPercentile(50, s.Seconds), P99: getPercentile(99, s.Seconds), Samples: len(s.Seconds), Failures: s.Failures, Failure: s.Failure}
}

// getPercentile returns the smallest sample that p percent of all samples do not exceed, or zero if there are
// none. The p99 of fewer than 100 samples is their maximum.
func getPercentile(p float64, samples []float64) float64 {
	if len(samples) == 0 {
		return 0
	}
	return slices.Sorted(slices.Values(samples))[int(math.Ceil(p/100*float64(len(samples))))-1]
}

// get returns the observation of an operation. It is empty if the phase ended earlier.
func (p Phase) get(o Operation) *Observation {
	if found, ok := p[o.Name]; ok {
		return found
	}
	return &Observation{}
}
