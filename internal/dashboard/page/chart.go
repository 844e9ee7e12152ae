package page

import (
	"fmt"
	"strings"

	"croft.dev/croft/internal/cost/money"
	"croft.dev/croft/internal/cost/report"
)

// Chart is a picture of amounts over time, as bars.
type Chart struct {
	// ID begins the identifiers of its texts.
	ID                 string
	Title, Description Text
	Width, Height      int
	Bars               []Bar
	// Lines are the horizontal lines with their amounts.
	Lines []ChartLine
}

// Bar is one period.
type Bar struct {
	X, Y, Width, Height int
	// Expected is the height of the part above it that is only expected, and ExpectedY its top.
	Expected, ExpectedY int
	// Label is below the bar; empty for most days. LabelX is its middle.
	Label          string
	LabelX, LabelY int
}

// ChartLine is a horizontal line with its amount.
type ChartLine struct {
	Y, From, To, TextX, TextY int
	Label                     string
}

// The geometry of charts, in pixels of the SVG.
const (
	chartWidth, chartHeight = 720, 220
	chartLeft, chartTop     = 90, 16
	chartBottom             = 190
	// labelBelow is the distance of a label's baseline from the bars.
	labelBelow = 18
	// gridLines is the number of horizontal lines.
	gridLines = 4
)

func drawMonths(h *report.History) Chart {
	c := newChart("months", T("Cost of the months"), T("The cost of each month in %s.", h.Currency))
	values, expected := make([]money.Amount, len(h.Months)), make([]money.Amount, len(h.Months))
	labels := make([]string, len(h.Months))
	for i, m := range h.Months {
		values[i], labels[i] = m.Total, m.From.Format("2006-01")
		if m.Until.After(h.Now) && h.Forecast != nil {
			expected[i] = max(0, h.Forecast.Total.Month-m.Total)
			c.Description = append(c.Description, T("The outlined part is expected.")...)
		}
	}
	c.draw(values, expected, labels)
	return c
}

func drawDays(h *report.History) Chart {
	c := newChart("days", T("Cost of the last days"), T("The cost of each day in %s. The last day is not complete.", h.Currency))
	values := make([]money.Amount, len(h.Days))
	labels := make([]string, len(h.Days))
	for i, d := range h.Days {
		values[i] = d.Total
		// A label for each week.
		if (len(h.Days)-1-i)%7 == 0 {
			labels[i] = d.From.Format("01-02")
		}
	}
	c.draw(values, make([]money.Amount, len(values)), labels)
	return c
}

func newChart(id string, title, description Text) Chart {
	return Chart{ID: id, Title: title, Description: description, Width: chartWidth, Height: chartHeight}
}

// draw computes the bars, and lines at round amounts.
func (c *Chart) draw(values, expected []money.Amount, labels []string) {
	highest := money.Amount(1)
	for i := range values {
		highest = max(highest, values[i]+expected[i])
	}
	step := chooseStep(highest)
	top := (highest + step - 1) / step * step
	scale := func(a money.Amount) int { return int(float64(a) / float64(top) * (chartBottom - chartTop)) }
	for a := money.Amount(0); a <= top; a += step {
		y := chartBottom - scale(a)
		c.Lines = append(c.Lines, ChartLine{Y: y, From: chartLeft, To: chartWidth, TextX: chartLeft - 8, TextY: y + 4, Label: formatStep(a)})
	}
	slot := (chartWidth - chartLeft) / max(1, len(values))
	gap := max(2, slot/5)
	for i := range values {
		height := scale(max(0, values[i]))
		b := Bar{X: chartLeft + i*slot + gap/2, Width: slot - gap, Y: chartBottom - height, Height: height}
		b.Expected = scale(expected[i])
		b.ExpectedY = b.Y - b.Expected
		b.Label, b.LabelX, b.LabelY = labels[i], b.X+b.Width/2, chartBottom+labelBelow
		c.Bars = append(c.Bars, b)
	}
}

// chooseStep returns a distance of 1, 2 or 5 times a power of ten between the lines.
func chooseStep(highest money.Amount) money.Amount {
	step := money.Amount(1)
	for {
		for _, factor := range []money.Amount{1, 2, 5} {
			if step*factor*gridLines >= highest {
				return step * factor
			}
		}
		step *= 10
	}
}

// formatStep formats a round amount without needless decimals.
func formatStep(a money.Amount) string {
	text := a.String()
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}

// Points returns the corners of the expected part's outline.
func (b Bar) Points() string {
	return fmt.Sprintf("%d,%d %d,%d %d,%d %d,%d", b.X, b.Y, b.X, b.ExpectedY, b.X+b.Width, b.ExpectedY, b.X+b.Width, b.Y)
}
