// Package money has amounts of a currency as whole numbers, and their exact division. No amount
// is a floating point number: a sum never depends on the order of its parts.
package money

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/bits"
	"strconv"
	"strings"
)

// Amount is an amount in millionths of the currency.
type Amount int64

// Unit is one unit of the currency.
const Unit Amount = 1_000_000

// maxPrice is the maximum price in units of the currency. With it, no product of a price, a
// size and a duration exceeds 128 bits.
const maxPrice = 1_000_000

// Format returns the amount with some of its six decimals, rounded half away from zero.
func (a Amount) Format(decimals int) string {
	if a < 0 {
		text := (-a).Format(decimals)
		if strings.Trim(text, "0.") == "" {
			return text
		}
		return "-" + text
	}
	unit := int64(1)
	for range 6 - decimals {
		unit *= 10
	}
	rounded := (int64(a) + unit/2) / unit * unit
	digits := strconv.FormatInt(rounded, 10)
	if missing := 7 - len(digits); missing > 0 {
		digits = "0000000"[:missing] + digits
	}
	whole := len(digits) - 6
	return digits[:whole] + "." + digits[whole:whole+decimals]
}

// String returns the amount with all of its decimals.
func (a Amount) String() string { return a.Format(6) }

// MarshalJSON writes the amount as a text, since many programs read numbers of JSON as floating
// point numbers.
func (a Amount) MarshalJSON() ([]byte, error) { return []byte(`"` + a.String() + `"`), nil }

// UnmarshalJSON reads an amount as MarshalJSON writes it. An answer of the ledger has tens of thousands.
func (a *Amount) UnmarshalJSON(data []byte) error {
	if len(data) < 2 || data[0] != '"' {
		return fmt.Errorf("%s is no text with an amount", data)
	}
	text := string(data[1 : len(data)-1])
	units, decimals, _ := strings.Cut(text, ".")
	millionths, err := strconv.ParseInt(units+decimals, 10, 64)
	if err != nil || len(decimals) != 6 {
		return fmt.Errorf("%q is no amount with six decimals", text)
	}
	*a = Amount(millionths)
	return nil
}

// ParsePrice reads a decimal number, such as 0.0225 or 2.25e-02, without rounding.
func ParsePrice(text string) (*big.Rat, error) {
	size, err := strconv.ParseFloat(text, 64)
	switch {
	case err != nil || math.IsNaN(size) || strings.ContainsAny(text, "_xX"):
		return nil, errors.New("must be a number, such as 0.0225")
	case size < 0:
		return nil, errors.New("must not be negative; write 0 for things that cost nothing")
	case size > maxPrice:
		return nil, fmt.Errorf("must be at most %d", maxPrice)
	case size < 1e-12:
		return new(big.Rat), nil // an exact value of 1e-999999999 would fill the memory
	}
	exact, ok := new(big.Rat).SetString(text)
	if !ok {
		return nil, errors.New("must be a number, such as 0.0225")
	}
	return exact, nil
}

// Round converts a price to whole millionths, half up. It is the only conversion, after all
// factors and exchange rates, so a price is rounded once.
func Round(price *big.Rat) Amount {
	scaled := new(big.Rat).Mul(price, big.NewRat(int64(Unit), 1))
	scaled.Add(scaled, big.NewRat(1, 2))
	return Amount(new(big.Int).Quo(scaled.Num(), scaled.Denom()).Int64())
}

// Scale returns amount × times / of, rounded half up. No factor may be negative.
func Scale(amount Amount, times, of int64) Amount {
	high, low := bits.Mul64(uint64(amount), uint64(times)) //nolint:gosec // no factor is negative
	quotient, rest := bits.Div64(high, low, uint64(of))    //nolint:gosec // no factor is negative
	if rest >= uint64(of)-rest {                           //nolint:gosec // no factor is negative
		quotient++
	}
	return Amount(quotient) //nolint:gosec // the callers limit prices and times
}

// Part is one part of a divided amount.
type Part struct {
	Amount Amount
	// Remainder is the rest of amount × weight / sum of weights. Extra is set if the part got
	// one of the millionths that remained.
	Remainder uint64
	Extra     bool
}
