package money

import (
	"errors"
	"math"
	"math/big"
	"strconv"
	"strings"
)

const (
	// scale is the number of decimals of a Decimal. Clouds bill with 10 or fewer.
	scale = 12
	// maxDigits limits the digits of a decimal number before its point, and all its digits.
	maxDigits, maxLength = 12, 64
	// maxExponent is above the exponents of all floating point numbers.
	maxExponent = 400
	// fastDigits is the number of digits that always fit into 64 bits.
	fastDigits = 18
)

// Decimal is a decimal number of any sign, with twelve decimals. Its zero value is 0. Sums are exact.
type Decimal struct{ scaled big.Int }

var errNoDecimal = errors.New("must be a decimal number, such as 0.0225")

// Parse sets d to a decimal number, such as -0.0225 or 2.25E-2. Further decimals are rounded half away
// from zero.
func (d *Decimal) Parse(text string) error {
	mantissa, exponent, err := cutExponent(text)
	if err != nil {
		return err
	}
	unsigned := strings.TrimPrefix(mantissa, "-")
	units, decimals, _ := strings.Cut(unsigned, ".")
	digits := strings.TrimLeft(units+decimals, "0")
	shift := scale - len(decimals) + exponent
	switch {
	case units+decimals == "" || strings.Trim(digits, "0123456789") != "":
		return errNoDecimal
	case len(unsigned) > maxLength || digits != "" && len(digits)+shift > scale+maxDigits:
		return errors.New("must have at most 12 digits before the point")
	case digits == "" || -shift > len(digits):
		d.scaled.SetInt64(0)
		return nil
	}
	d.setDigits(digits, shift)
	if len(unsigned) < len(mantissa) {
		d.scaled.Neg(&d.scaled)
	}
	return nil
}

func cutExponent(text string) (mantissa string, exponent int, err error) {
	at := strings.IndexAny(text, "eE")
	if at < 0 {
		return text, 0, nil
	}
	exponent, err = strconv.Atoi(text[at+1:])
	if err != nil || exponent > maxExponent || exponent < -maxExponent {
		return "", 0, errNoDecimal
	}
	return text[:at], exponent, nil
}

// setDigits sets d to digits × 10^shift / 10^scale.
func (d *Decimal) setDigits(digits string, shift int) {
	if shift >= 0 && len(digits)+shift <= fastDigits || shift < 0 && len(digits) <= fastDigits && -shift <= fastDigits {
		n, _ := strconv.ParseInt(digits, 10, 64) // at most 18 digits
		for ; shift > 0; shift-- {
			n *= 10
		}
		half := int64(0)
		for ; shift < 0; shift++ {
			n, half = n/10, n%10
		}
		if half >= 5 {
			n++
		}
		d.scaled.SetInt64(n)
		return
	}
	d.scaled.SetString(digits, 10)
	power := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(max(shift, -shift))), nil)
	if shift >= 0 {
		d.scaled.Mul(&d.scaled, power)
		return
	}
	var rest big.Int
	d.scaled.QuoRem(&d.scaled, power, &rest)
	if rest.Lsh(&rest, 1).Cmp(power) >= 0 {
		d.scaled.Add(&d.scaled, big.NewInt(1))
	}
}

// Add adds another number.
func (d *Decimal) Add(other *Decimal) { d.scaled.Add(&d.scaled, &other.scaled) }

// Subtract subtracts another number.
func (d *Decimal) Subtract(other *Decimal) { d.scaled.Sub(&d.scaled, &other.scaled) }

// Set sets d to another number.
func (d *Decimal) Set(other *Decimal) { d.scaled.Set(&other.scaled) }

// Sign returns -1, 0 or 1.
func (d *Decimal) Sign() int { return d.scaled.Sign() }

// Round returns the amount, rounded half away from zero. An amount that is too large becomes the largest
// one, with the same sign.
func (d *Decimal) Round() Amount {
	var quotient, rest big.Int
	unit := big.NewInt(1_000_000) // 10^12 to millionths
	quotient.QuoRem(&d.scaled, unit, &rest)
	if rest.Abs(&rest).Lsh(&rest, 1).Cmp(unit) >= 0 {
		quotient.Add(&quotient, big.NewInt(int64(d.scaled.Sign())))
	}
	if !quotient.IsInt64() {
		if d.scaled.Sign() < 0 {
			return -math.MaxInt64
		}
		return math.MaxInt64
	}
	return Amount(quotient.Int64())
}
