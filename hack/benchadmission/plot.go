package main

import (
	_ "embed"
	"fmt"
	"math"
	"strings"
	"text/template"

	"croft.dev/croft/hack/internal/samples"
)

//go:embed plot.svg.tmpl
var plotTemplate string

const plotTitle = "What a pod's creation costs as tenants grow in number"

// These are the size of a panel's plot area, and the position of the first. The template only
// uses values computed from them.
const (
	plotWidth, plotHeight = 290.0, 260.0
	plotLeft, plotTop     = 64.0, 96.0
	panelStep             = 530.0
	// labelGap is the minimum distance between the names of lines.
	labelGap = 15.0
)

// chart is the input of the template.
type chart struct {
	Title, Subtitle, Footnote string
	Panels                    []panel
}

// panel is one diagram: tenants from left to right, milliseconds upwards.
type panel struct {
	Title                    string
	Left, Right, Top, Bottom float64
	Middle                   float64
	X, Y                     []tick
	Series                   []series
}

type tick struct{ At, Label string }

// series is one line of a diagram.
type series struct {
	Class, Name, Value, Points, Band string
	Dots                             []dot
	LabelX, LabelY                   string
	end                              float64
}

type dot struct{ X, Y, Title string }

// point is one figure, with its interval, if known.
type point struct {
	tenants        int
	value, low, hi float64
}

// curve is a series before it is drawn.
type curve struct {
	name   string
	points []point
}

// classes are the CSS classes of lines, which the template's style colours.
var classes = map[string]string{noPolicy: "none", native: "native", onGatekeeper: "croft", alone: "alone"}

// renderPlot draws the figures. It uses a template instead of a library, since no library's output is
// readable on both light and dark backgrounds.
func (r report) renderPlot() (string, error) {
	c := chart{
		Title: plotTitle,
		Subtitle: fmt.Sprintf("dry-run creations, in turns in one API server · Kubernetes %s, Gatekeeper %s",
			r.Machine.Sandbox["kubernetes"], r.Gatekeeper),
		Footnote: fmt.Sprintf("%s · %s, %d cores, load %s at the start · %d pods for each point · band: 95%% interval of the median",
			r.Started.UTC().Format("2006-01-02"), r.Machine.OS, r.Machine.Cores, r.Machine.Load, r.Rounds),
		Panels: []panel{
			newPanel(0, "added to a pod without policy, median", r.listCosts()),
			newPanel(1, "whole creation, p99", r.listTails()),
		},
	}
	t, err := template.New("plot").Parse(plotTemplate)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	err = t.Execute(&b, c)
	return b.String(), err
}

// listCosts returns the cost of each line.
func (r report) listCosts() []curve {
	return r.buildCurves([]string{native, onGatekeeper, alone}, func(s sizeResult, name string) point {
		c := s.computeCost(name)
		return point{s.Tenants, c.Median, c.Low, c.High}
	})
}

// listTails returns the 99th percentile of each line.
func (r report) listTails() []curve {
	return r.buildCurves([]string{noPolicy, native, onGatekeeper, alone}, func(s sizeResult, name string) point {
		p99 := samples.Percentile(99, s.findLine(name).Milliseconds)
		return point{s.Tenants, p99, p99, p99}
	})
}

// buildCurves takes each line from the comparison that has it. Lines that all comparisons share are
// taken from the first.
func (r report) buildCurves(names []string, at func(sizeResult, string) point) []curve {
	var all []curve
	for _, name := range names {
		c, found := r.findComparison(name)
		if !found && len(r.Comparisons) > 0 && name != alone && name != onGatekeeper {
			c, found = r.Comparisons[0], true
		}
		if !found {
			continue
		}
		line := curve{name: name}
		for _, s := range c.Sizes {
			line.points = append(line.points, at(s, name))
		}
		all = append(all, line)
	}
	return all
}

func newPanel(n int, title string, curves []curve) panel {
	p := panel{Title: title, Left: plotLeft + float64(n)*panelStep, Top: plotTop, Bottom: plotTop + plotHeight}
	p.Right = p.Left + plotWidth
	p.Middle = (p.Left + p.Right) / 2
	scale, tenants := newScale(curves), 1
	for _, c := range curves {
		for _, at := range c.points {
			tenants = max(tenants, at.tenants)
		}
	}
	x := func(count int) float64 { return p.Left + plotWidth*float64(count)/float64(tenants) }
	y := func(v float64) float64 { return p.Bottom - plotHeight*scale.computeShare(v) }
	for _, v := range scale.listTicks() {
		p.Y = append(p.Y, tick{formatCoordinate(y(v)), fmt.Sprintf("%g", v)})
	}
	p.X = buildTicks(curves, x)
	for _, c := range curves {
		p.Series = append(p.Series, drawCurve(c, x, y))
	}
	placeLabels(p.Series)
	return p
}

// buildTicks returns ticks at the measured sizes, except where labels would overlap.
func buildTicks(curves []curve, x func(int) float64) []tick {
	var ticks []tick
	if len(curves) == 0 {
		return nil
	}
	last := math.Inf(-1)
	for _, at := range curves[0].points {
		if x(at.tenants)-last >= 24 {
			last = x(at.tenants)
			ticks = append(ticks, tick{formatCoordinate(last), fmt.Sprint(at.tenants)})
		}
	}
	return ticks
}

func drawCurve(c curve, x func(int) float64, y func(float64) float64) series {
	s := series{Class: classes[c.name], Name: c.name}
	var points, upper, lower []string
	for _, at := range c.points {
		px := formatCoordinate(x(at.tenants))
		points = append(points, px+","+formatCoordinate(y(at.value)))
		upper = append(upper, px+","+formatCoordinate(y(at.hi)))
		lower = append([]string{px + "," + formatCoordinate(y(at.low))}, lower...)
		s.Dots = append(s.Dots, dot{px, formatCoordinate(y(at.value)), fmt.Sprintf("%s, %s: %.2f ms", c.name, formatTenants(at.tenants), at.value)})
		s.LabelX, s.end, s.Value = formatCoordinate(x(at.tenants)+8), y(at.value), fmt.Sprintf("%.1f ms", at.value)
	}
	s.Points, s.Band = strings.Join(points, " "), strings.Join(append(upper, lower...), " ")
	return s
}

// placeLabels places each name at the end of its line, and moves up names that would overlap.
func placeLabels(all []series) {
	order := make([]*series, len(all))
	for i := range all {
		order[i] = &all[i]
	}
	// Sort by position, the lowest on the page first.
	for i := range order {
		for j := i + 1; j < len(order); j++ {
			if order[j].end > order[i].end {
				order[i], order[j] = order[j], order[i]
			}
		}
	}
	free := math.Inf(1)
	for _, s := range order {
		at := min(s.end+4, free)
		free = at - labelGap
		s.LabelY = formatCoordinate(at)
	}
}

func formatCoordinate(v float64) string { return fmt.Sprintf("%.1f", v) }
