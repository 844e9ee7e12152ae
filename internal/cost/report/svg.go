package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"croft.dev/croft/internal/cost/money"
	"croft.dev/croft/internal/declare/picture"
)

// These are sizes in the picture, in its own units.
const (
	namesWidth  = 270
	totalsWidth = 130
	rowHeight   = 28
	barHeight   = 16
	// firstRow is the position of the first row, below the legend.
	firstRow = 92
	// maxRows is the maximum number of lines in a picture. If there are more, the most expensive are shown.
	maxRows = 40
)

// The colors of both parts of a bar, from Okabe and Ito's palette, which color-blind people can distinguish.
const (
	costColor = "#0072b2"
	idleColor = "#e69f00"
)

// chart is a picture whose bars have a common scale.
type chart struct {
	picture.Picture
	// scale is the number of units per millionth of the currency.
	scale    float64
	decimals int
}

// RenderSVG draws a bar for each line: its cost, and its share of the idle cost.
func RenderSVG(r *Report) string {
	lines := slices.Clone(r.Lines)
	title := fmt.Sprintf("Cost by %s in %s, from %s until %s", r.By, r.Currency, r.From.Format(time.RFC3339), r.Until.Format(time.RFC3339))
	if len(lines) > maxRows {
		title += fmt.Sprintf(": the most expensive %d of %d", maxRows, len(lines))
		slices.SortStableFunc(lines, func(a, b *Line) int { return cmp.Compare(b.Total, a.Total) })
		lines = lines[:maxRows]
	}
	var most money.Amount
	for _, line := range lines {
		most = max(most, line.Cost+line.Idle)
	}
	step := findStep(most / 8)
	c := &chart{scale: (picture.Width - namesWidth - totalsWidth) / float64(max(most, step)), decimals: 2}
	if step < money.Unit/10 {
		c.decimals = 4
	}
	c.DrawHeading(title)
	c.drawLegend()
	bottom := firstRow + rowHeight*len(lines)
	for at := money.Amount(0); at <= max(most, step); at += step {
		x := c.toX(at)
		c.Draw("<line class=\"grid\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\"/>\n", x, x, firstRow-6, bottom+4)
		c.DrawText("dim", "middle", x, bottom+20, at.Format(c.decimals))
	}
	for i, line := range lines {
		c.drawLine(line, firstRow+rowHeight*i)
	}
	return c.Finish(title, bottom+36)
}

func (c *chart) toX(amount money.Amount) float64 { return namesWidth + float64(amount)*c.scale }

func (c *chart) drawLegend() {
	for i, entry := range [][2]string{
		{costColor, "cost: own requests, volumes and load balancers"}, {idleColor, "idle: share of capacity that no pod requested"},
	} {
		x := 16 + 330*i
		c.Draw("<rect x=\"%d\" y=\"40\" width=\"12\" height=\"12\" fill=%q/>\n", x, entry[0])
		c.DrawText("dim", "start", float64(x+18), 50, entry[1])
	}
	c.DrawText("dim", "start", 16, 70, "~ an estimated part; ? an unknown part, which is in no bar; - idle cost that is not shown")
}

// drawLine draws the cost and the idle cost of a line one after the other, and its total.
func (c *chart) drawLine(line *Line, y int) {
	c.DrawText("ink", "end", namesWidth-12, y+12, picture.ShortenMiddle(line.Name, 38))
	c.drawBar(costColor, "cost", 0, line.Cost, y)
	c.drawBar(idleColor, "idle", line.Cost, line.Idle, y)
	total := line.Total.Format(c.decimals)
	if line.Estimated > 0 {
		total = "~" + total
	}
	if line.UnknownSeconds > 0 {
		total += " + ?"
	}
	if line.IdleHidden {
		total += " + -"
	}
	c.DrawText("ink", "start", c.toX(line.Cost+line.Idle)+8, y+12, total)
}

func (c *chart) drawBar(color, noun string, from, amount money.Amount, y int) {
	if amount <= 0 {
		return
	}
	c.Draw("<rect x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"%d\" fill=%q><title>%s %s</title></rect>\n",
		c.toX(from), y, float64(amount)*c.scale, barHeight, color, noun, amount)
}

// findStep returns the next of 1, 2, 5, 10, 20, … millionths.
func findStep(atLeast money.Amount) money.Amount {
	for power := money.Amount(100); power < math.MaxInt64/10; power *= 10 {
		for _, factor := range []money.Amount{1, 2, 5} {
			if power*factor >= atLeast {
				return power * factor
			}
		}
	}
	return math.MaxInt64 / 10
}
