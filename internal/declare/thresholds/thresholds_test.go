package thresholds

import "testing"

// TestIsAbove fails if a number that is exactly at the share counts as above it.
func TestIsAbove(t *testing.T) {
	for objects, want := range map[int]bool{0: false, 5_000: false, 5_001: true, 20_000: true} {
		if got := Namespaces.IsAbove(objects, 50); got != want {
			t.Errorf("%d namespaces: %t, want %t", objects, got, want)
		}
	}
	if got, want := Namespaces.Format(40), "40 of 10000 namespaces"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
