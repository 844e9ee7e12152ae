package money

import (
	"math/big"
	"strings"
	"testing"
)

func TestDecimal(t *testing.T) {
	for text, want := range map[string]string{
		"0": "0", "0.0225": "22500000000", "-0.0225": "-22500000000", "2.25E-2": "22500000000", "2.25e+2": "225000000000000",
		"1": "1000000000000", ".5": "500000000000", "-1.": "-1000000000000", "0.0000000000004": "0", "0.0000000000005": "1",
		"-0.0000000000005": "-1", "0.30000000000000004": "300000000000", "999999999999.999999999999": "999999999999999999999999",
		"1E-300": "0", "0E300": "0", "00012.5": "12500000000000", "4.9E-13": "0", "5E-13": "1", "1E11": "100000000000000000000000",
		"0.1234567890123456789": "123456789012",
		"123456.7890123456789":  "123456789012345679",
	} {
		var d Decimal
		if err := d.Parse(text); err != nil || d.scaled.String() != want {
			t.Errorf("%s is %s, want %s: %v", text, d.scaled.String(), want, err)
		}
	}
	for _, text := range []string{"", "-", ".", "--1", "+1", "1,5", "1e", "1e9999", "0x1", "1_0", "NaN", "Inf", "1 ", "1/3", "1.2.3", "1E12",
		"1000000000000", strings.Repeat("0", 99) + "1"} {
		if err := new(Decimal).Parse(text); err == nil {
			t.Errorf("%q is a decimal number", text)
		}
	}
}

func TestRound(t *testing.T) {
	for text, want := range map[string]Amount{
		"0.0000004999": 0, "0.0000005": 1, "-0.0000004999": 0, "-0.0000005": -1, "12.3456785": 12_345_679, "-12.3456785": -12_345_679,
	} {
		var d Decimal
		if err := d.Parse(text); err != nil || d.Round() != want {
			t.Errorf("%s is %s, want %s: %v", text, d.Round(), want, err)
		}
	}
	var sum, part Decimal
	for range 1_000_000 {
		if err := part.Parse("0.0000001"); err != nil {
			t.Fatal(err)
		}
		sum.Add(&part)
	}
	if sum.Round() != 100_000 {
		t.Errorf("a million small parts are %s", sum.Round())
	}
}

// FuzzDecimal compares numbers with big.Rat.
func FuzzDecimal(f *testing.F) {
	for _, text := range []string{"-12.345", "1e-7", "0.00000000000049", "99999999.1234567890123"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var d Decimal
		if d.Parse(text) != nil {
			return
		}
		exact, ok := new(big.Rat).SetString(text)
		if !ok {
			t.Fatalf("%q is a number", text)
		}
		exact.Sub(exact, new(big.Rat).SetFrac(&d.scaled, big.NewInt(1_000_000_000_000)))
		if exact.Abs(exact).Cmp(big.NewRat(1, 2_000_000_000_000)) > 0 {
			t.Errorf("%q is %s", text, d.scaled.String())
		}
	})
}
