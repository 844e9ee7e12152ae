package money

import (
	"encoding/json"
	"math/big"
	"strings"
	"testing"
)

func TestParsePrice(t *testing.T) {
	for text, want := range map[string]Amount{
		"0.096": 96_000, "0": 0, "1e-7": 0, "0.0000005": 1, "0.0000004": 0, "2.25e-02": 22_500, "1000000": 1e12,
		"1e-999999999": 0, "0.1": 100_000, "12.3456785": 12_345_679,
	} {
		rate, err := ParsePrice(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
		} else if got := Round(rate); got != want {
			t.Errorf("%s is %d millionths, want %d", text, got, want)
		}
	}
	for text, want := range map[string]string{
		"-1": "must not be negative", "1e7": "at most 1000000", "Inf": "at most", "NaN": "must be a number",
		"0x1p-2": "must be a number", "1_0": "must be a number", "": "must be a number", "1/3": "must be a number",
		"1e999999999": "must be a number",
	} {
		if _, err := ParsePrice(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func TestFormat(t *testing.T) {
	for amount, want := range map[Amount]string{
		0: "0.000000 0.0000 0.00", 1: "0.000001 0.0000 0.00", 12_345_678: "12.345678 12.3457 12.35",
		999_999: "0.999999 1.0000 1.00", 50: "0.000050 0.0001 0.00",
		-1: "-0.000001 0.0000 0.00", -12_345_678: "-12.345678 -12.3457 -12.35",
	} {
		if got := amount.Format(6) + " " + amount.Format(4) + " " + amount.Format(2); got != want {
			t.Errorf("%d is %s, want %s", amount, got, want)
		}
	}
	if text, err := Amount(1_500_000).MarshalJSON(); err != nil || string(text) != `"1.500000"` {
		t.Errorf("as JSON: %s, %v", text, err)
	}
}

func TestScale(t *testing.T) {
	for _, c := range []struct {
		amount    Amount
		times, of int64
		want      Amount
	}{
		{96_000, 3600, 3600, 96_000}, {96_000, 2, 3600, 53}, {1, 1800, 3600, 1}, {1, 1799, 3600, 0},
		{1e12, 1 << 40, 1 << 40, 1e12},
	} {
		if got := Scale(c.amount, c.times, c.of); got != c.want {
			t.Errorf("%d × %d / %d is %d, want %d", c.amount, c.times, c.of, got, c.want)
		}
	}
}

// TestDivide compares parts with the largest remainder method by hand.
func TestDivide(t *testing.T) {
	for name, c := range map[string]struct {
		amount  Amount
		weights []int64
		want    []Amount
	}{
		"even":                       {9, []int64{1, 1, 1}, []Amount{3, 3, 3}},
		"a tie goes to the earlier":  {10, []int64{1, 1, 1}, []Amount{4, 3, 3}},
		"the largest remainder":      {10, []int64{1, 2, 4}, []Amount{1, 3, 6}},
		"two extra millionths":       {11, []int64{2, 2, 3, 3}, []Amount{2, 2, 4, 3}},
		"a weight of 0":              {5, []int64{0, 1}, []Amount{0, 5}},
		"nothing to divide":          {0, []int64{1, 2}, []Amount{0, 0}},
		"no weight":                  {5, []int64{0, 0}, nil},
		"products beyond 64 bits":    {1e12, []int64{1 << 50, 1 << 50}, []Amount{5e11, 5e11}},
		"a millionth for many parts": {1, []int64{1, 1, 2}, []Amount{0, 0, 1}},
	} {
		parts := Divide(c.amount, c.weights)
		if len(parts) != len(c.want) {
			t.Errorf("%s: %d parts, want %d", name, len(parts), len(c.want))
			continue
		}
		for i := range parts {
			if parts[i].Amount != c.want[i] {
				t.Errorf("%s: part %d is %d, want %d", name, i, parts[i].Amount, c.want[i])
			}
		}
	}
}

// TestRoundProductOnce expects a price of many factors to be rounded once.
func TestRoundProductOnce(t *testing.T) {
	rate, factor := big.NewRat(10_000_005, 10_000_000), big.NewRat(1, 3)
	if got := Round(new(big.Rat).Mul(rate, factor)); got != 333_334 {
		t.Errorf("%d, want 333334: a third of 1.0000005 is 0.3333335", got)
	}
}

// TestJSON expects to read an amount as it was written.
func TestJSON(t *testing.T) {
	for _, want := range []Amount{0, 1, 999_999, 1_000_000, 123_456_789_012, -1, -1_500_000} {
		text, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		var got Amount
		if err := json.Unmarshal(text, &got); err != nil || got != want {
			t.Errorf("%s is %d (%v), want %d", text, got, err, want)
		}
	}
	for _, text := range []string{`1`, `"1"`, `"1.5"`, `"a.000000"`, `""`, `"1.0000000"`} {
		if err := json.Unmarshal([]byte(text), new(Amount)); err == nil {
			t.Errorf("%s is an amount", text)
		}
	}
}
