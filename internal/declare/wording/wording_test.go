package wording

import (
	"strings"
	"testing"
)

func TestNearest(t *testing.T) {
	known := []string{"pool", "pools", "domains", "costCode", "emptyTTL"}
	for name, want := range map[string]string{
		"pol": "pool", "emtpyTTL": "emptyTTL", "costcode": "costCode", "domain": "domains",
		"foo": "", "x": "", "": "", "something": "", "CostCode": "costCode",
	} {
		if got, _ := Nearest(name, known); got != want {
			t.Errorf("nearest to %q is %q, want %q", name, got, want)
		}
	}
}

func TestText(t *testing.T) {
	for want, v := range map[string]any{
		"nothing": nil, "true": true, "10": int64(10), "0.5": 0.5, "{a: 1, b: x}": map[string]any{"b": "x", "a": int64(1)},
		strings.Repeat("ä", 40) + "…": "x"[1:] + strings.Repeat("ä", 41),
	} {
		if got := Text(v); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
