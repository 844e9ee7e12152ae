package ledger

import (
	"math/rand/v2"
	"os"
	"slices"
	"testing"
)

// TestExactSums checks the guarantees of the ledger on random hours: CROFT_TEST_ALL=1 checks a
// million. A failure names the seed of its hour.
func TestExactSums(t *testing.T) {
	hours := 20_000
	if os.Getenv("CROFT_TEST_ALL") != "" {
		hours = 1_000_000
	}
	for seed := range uint64(hours) {
		r := rand.New(rand.NewPCG(seed, 39)) //nolint:gosec // a test repeats its numbers
		in := makeInput(r)
		l, err := New(in)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		hour := l.Compute(whole)
		if err := checkHour(in, hour); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		shuffleInput(r, &in)
		if l, err = New(in); err != nil {
			t.Fatalf("seed %d, shuffled: %v", seed, err)
		}
		if again := l.Compute(whole); !slices.Equal(hour.Rows, again.Rows) {
			t.Fatalf("seed %d: the rows depend on the order of the input:\n%v\n%v", seed, hour.Rows, again.Rows)
		}
	}
}
