package latency

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"croft.dev/croft/internal/declare/picture"
)

// These are sizes in the picture, in its own units.
const (
	namesWidth = 270
	totalWidth = 80
	rowHeight  = 44
	barHeight  = 18
	// laneHeight is the height of concurrent phases below the bar.
	laneHeight   = 5
	legendRow    = 20
	legendColumn = 315
	// maxRows is the maximum number of nodes in a picture. If there are more, the slowest are
	// shown.
	maxRows = 40
)

// colors are the phases' colors, from Okabe and Ito's palette, which color-blind people can
// distinguish.
var colors = map[Phase]struct{ fill, ink string }{
	Decision:       {"#e69f00", "#000"},
	Launch:         {"#56b4e9", "#000"},
	Boot:           {"#0072b2", "#fff"},
	Ready:          {"#009e73", "#000"},
	Initialization: {"#7f7f7f", "#fff"},
	Scheduling:     {"#f0e442", "#000"},
	Start:          {"#cc79a7", "#000"},

	VMStart:    {"#9ecae1", ""},
	System:     {"#6baed6", ""},
	UserData:   {"#d55e00", ""},
	Nodeadm:    {"#fdae6b", ""},
	Containerd: {"#08306b", ""},
	Kubelet:    {"#2171b5", ""},
	Interfaces: {"#54278f", ""},
	Links:      {"#807dba", ""},
	Networks:   {"#bcbddc", ""},
}

// below is the distance of a lane's phases from the top of the bar.
var below = map[Lane]int{
	Initializing: barHeight + 2, Booting: barHeight + 2, Networking: barHeight + 2 + laneHeight + 2,
}

// RenderSVG draws a row for each node, with its phases one after the other.
func RenderSVG(all []Timeline) string {
	rows := slices.DeleteFunc(slices.Clone(all), func(t Timeline) bool { return len(t.Events) == 0 })
	shown := fmt.Sprintf("%d nodes", len(rows))
	if len(rows) == 1 {
		shown = "1 node"
	}
	if len(rows) > maxRows {
		shown = fmt.Sprintf("the slowest %d of %d nodes", maxRows, len(rows))
		slices.SortStableFunc(rows, func(a, b Timeline) int { return cmp.Compare(b.TotalSeconds(), a.TotalSeconds()) })
		rows = rows[:maxRows]
	}
	longest := 1.0
	for i := range rows {
		longest = max(longest, rows[i].TotalSeconds())
	}
	p := &chart{scale: (picture.Width - namesWidth - totalWidth) / longest}
	top := p.drawLegend(shown, rows)
	bottom := top + rowHeight*len(rows)
	p.drawAxis(longest, top, bottom)
	for i := range rows {
		p.drawRow(&rows[i], top+rowHeight*i)
	}
	return p.Finish("Where the time of "+shown+" went", bottom+40)
}

type chart struct {
	picture.Picture
	// scale is the number of units per second.
	scale float64
}

func (p *chart) toX(seconds float64) float64 { return namesWidth + seconds*p.scale }

// drawLegend explains the colors, and returns the position of the first row. It explains optional
// phases only if a node has them.
func (p *chart) drawLegend(shown string, rows []Timeline) int {
	p.DrawHeading("Where the time of " + shown + " went")
	entries, y := 0, 0
	place := func() (x int) {
		x, y = 16+entries%3*legendColumn, 40+entries/3*legendRow
		entries++
		return x
	}
	for _, d := range Definitions() {
		used := slices.ContainsFunc(rows, func(t Timeline) bool { _, ok := t.Phases[d.Phase]; return ok })
		if d.Lane == Totals || d.IsWide() && !used {
			continue
		}
		x := place()
		height, caption := 12, d.Phase.Title()+": "+d.Description
		if d.Lane != Main {
			height = laneHeight
		}
		p.Draw("<rect x=\"%d\" y=\"%d\" width=\"12\" height=\"%d\" fill=%q/>\n", x, y+12-height, height,
			colors[d.Phase].fill)
		p.DrawText("dim", "start", float64(x+18), y+11, caption)
	}
	x := place()
	p.Draw("<rect class=\"known\" x=\"%d\" y=\"%d\" width=\"12\" height=\"4\"/>\n", x, y+4)
	p.DrawText("dim", "start", float64(x+18), y+11, "not known; … not Ready as far as is known")
	return y + legendRow + 20
}

// drawAxis draws lines at round numbers of seconds.
func (p *chart) drawAxis(longest float64, top, bottom int) {
	step := FindRoundStep(longest / 8)
	for at := 0.0; at <= longest; at += step {
		p.Draw("<line class=\"grid\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\"/>\n", p.toX(at), p.toX(at),
			top-6, bottom+4)
		p.DrawText("dim", "middle", p.toX(at), bottom+20, FormatSeconds(at))
	}
	p.DrawText("dim", "end", namesWidth-12, bottom+20, "since the first event")
}

// FindRoundStep returns the next round number of seconds, minutes or hours, for the lines of a picture.
func FindRoundStep(atLeast float64) float64 {
	for _, step := range []float64{1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800} {
		if step >= atLeast {
			return step
		}
	}
	return math.Ceil(atLeast/3600) * 3600
}

// drawRow draws one node.
func (p *chart) drawRow(t *Timeline, y int) {
	p.DrawText("ink", "end", namesWidth-12, y+13, picture.ShortenMiddle(t.Title(), 38))
	var about []string
	for _, part := range []string{t.Pool, t.InstanceType, t.Zone} {
		if part != "" {
			about = append(about, part)
		}
	}
	p.DrawText("dim", "end", namesWidth-12, y+28, picture.ShortenMiddle(strings.Join(about, " · "), 42))
	p.Draw("<rect class=\"known\" x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"4\"/>\n", p.toX(0), y+7,
		t.TotalSeconds()*p.scale)
	for _, b := range t.Bars() {
		p.drawBar(b, y)
	}
	p.DrawText("ink", "start", p.toX(t.TotalSeconds())+8, y+13, t.FormatTotal())
}

// drawBar draws a phase. Concurrent phases are drawn below the main ones.
func (p *chart) drawBar(b Bar, y int) {
	height, width := barHeight, b.Seconds*p.scale
	if b.Lane != Main {
		y, height = y+below[b.Lane], laneHeight
	}
	p.Draw("<rect x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"%d\" fill=%q><title>%s</title></rect>\n",
		p.toX(b.Begin), y, width, height, colors[b.Phase].fill, picture.Escape(fmt.Sprintf("%s %s: %s", b.Phase.Title(), FormatSeconds(b.Seconds),
			b.Description)))
	label := FormatSeconds(b.Seconds)
	if b.Lane != Main || width < float64(8*len(label)) {
		return
	}
	p.Draw("<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\" font-size=\"11\" fill=%q>%s</text>\n",
		p.toX(b.Begin)+width/2, y+13, colors[b.Phase].ink, label)
}

// FormatSeconds formats a number of seconds: 57s, 2m5s.
func FormatSeconds(seconds float64) string {
	tenths := math.Round(seconds * 10)
	if tenths < 1200 {
		return strconv.FormatFloat(tenths/10, 'f', -1, 64) + "s"
	}
	rounded := int(math.Round(seconds))
	text := ""
	if rounded >= 3600 {
		text = fmt.Sprintf("%dh", rounded/3600)
	}
	if minutes := rounded % 3600 / 60; minutes > 0 {
		text += fmt.Sprintf("%dm", minutes)
	}
	if rest := rounded % 60; rest > 0 {
		text += fmt.Sprintf("%ds", rest)
	}
	return text
}
