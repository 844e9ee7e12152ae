package main

import (
	"encoding/xml"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
)

func TestPlot(t *testing.T) {
	plot, err := makeReport().renderPlot()
	if err != nil {
		t.Fatal(err)
	}
	assertGolden(t, "admission.svg", plot)
	for decoder := xml.NewDecoder(strings.NewReader(plot)); ; {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("not XML: %v", err)
		}
	}
	if strings.Contains(plot, "NaN") || strings.Contains(plot, "Inf") {
		t.Error("it has coordinates that are no numbers")
	}
}

// TestPlotMissingFigures fails if missing figures prevent the others from being drawn.
func TestPlotMissingFigures(t *testing.T) {
	one := makeReport()
	one.Comparisons = one.Comparisons[:1]
	one.Comparisons[0].Sizes = one.Comparisons[0].Sizes[:1]
	for name, r := range map[string]report{"one size": one, "nothing": {}} {
		plot, err := r.renderPlot()
		if err != nil || strings.Contains(plot, "NaN") || strings.Contains(plot, "Inf") {
			t.Errorf("%s: %v\n%s", name, err, plot)
		}
	}
}

func TestScale(t *testing.T) {
	for name, c := range map[string]struct {
		low, high float64
		want      scale
		ticks     []float64
	}{
		"a decade":  {1.1, 9, scale{1, 10}, []float64{1, 2, 5, 10}},
		"many":      {0.9, 260, scale{0.5, 500}, []float64{1, 10, 100, 500}},
		"one value": {3, 3, scale{2, 20}, []float64{2, 5, 10, 20}},
		"nothing":   {-1, 0, scale{0.1, 1}, []float64{0.1, 0.2, 0.5, 1}},
	} {
		s := newScale([]curve{{points: []point{{1, c.low, c.low, c.low}, {2, c.high, c.high, c.high}}}})
		if s != c.want || !slices.Equal(s.listTicks(), c.ticks) {
			t.Errorf("%s: %v with ticks %v, want %v with %v", name, s, s.listTicks(), c.want, c.ticks)
		}
		if s.computeShare(s.low) != 0 || s.computeShare(s.high) != 1 || s.computeShare(-5) != 0 {
			t.Errorf("%s: the ends of the axis are not at its ends", name)
		}
	}
}
