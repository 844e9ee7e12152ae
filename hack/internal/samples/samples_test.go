package samples

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func TestPercentile(t *testing.T) {
	hundred := make([]float64, 100)
	for i := range hundred {
		hundred[i] = float64(100 - i)
	}
	for _, c := range []struct {
		p       float64
		samples []float64
		want    float64
	}{
		{50, nil, 0},
		{50, []float64{7}, 7},
		{50, []float64{3, 1, 2}, 2},
		{99, []float64{3, 1, 2}, 3},
		{50, hundred, 50},
		{99, hundred, 99},
		{100, hundred, 100},
	} {
		if got := Percentile(c.p, c.samples); got != c.want {
			t.Errorf("Percentile(%g, %d samples) = %g, want %g", c.p, len(c.samples), got, c.want)
		}
	}
}

func TestDifferences(t *testing.T) {
	got := Differences([]float64{3, 5, 9}, []float64{1, 5})
	if !slices.Equal(got, []float64{2, 0}) {
		t.Errorf("got %v", got)
	}
}

func TestMedianIntervalOfFewSamples(t *testing.T) {
	for _, c := range []struct {
		samples   []float64
		low, high float64
	}{
		{nil, 0, 0},
		{[]float64{7}, 7, 7},
		{[]float64{2, 1}, 1, 2},
	} {
		if low, high := MedianInterval(c.samples); low != c.low || high != c.high {
			t.Errorf("%v: from %g to %g, want from %g to %g", c.samples, low, high, c.low, c.high)
		}
	}
}

// TestMedianIntervalContainsMedian draws repeatedly from a distribution with a known median,
// which is skewed like durations.
func TestMedianIntervalContainsMedian(t *testing.T) {
	draw := rand.New(rand.NewPCG(1, 2))
	const median, tries = 0.6931471805599453, 2000
	held := 0
	for range tries {
		drawn := make([]float64, 200)
		for i := range drawn {
			drawn[i] = draw.ExpFloat64()
		}
		if low, high := MedianInterval(drawn); low <= median && median <= high {
			held++
		}
	}
	if share := float64(held) / tries; share < 0.94 || share > 0.98 {
		t.Errorf("the interval held the median in %.1f%% of all tries", share*100)
	}
}
