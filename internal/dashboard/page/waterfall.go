package page

import (
	"strings"

	"croft.dev/croft/internal/diagnose/latency"
)

// Waterfall shows the phases of nodes as bars, one node in a row. The table next to it has the same data.
type Waterfall struct {
	Title, Description Text
	Width, Height      int
	Rows               []WaterfallRow
	// Lines are the vertical lines at round times.
	Lines []WaterfallLine
	// Legend explains the phases of the rows.
	Legend []WaterfallEntry
}

// WaterfallRow is one node. Its name is shortened to Longest characters.
type WaterfallRow struct {
	Name, Total  string
	Longest      int
	NameX, TextY int
	TotalX       int
	Known        WaterfallBar
	Bars         []WaterfallBar
}

// WaterfallBar is a phase. Its class in the style sheet is phase- and Phase.
type WaterfallBar struct {
	Phase               latency.Phase
	X, Y, Width, Height int
	// Caption is shown next to the pointer.
	Caption Text
}

// WaterfallLine is a vertical line with its time below it.
type WaterfallLine struct {
	X, From, To, TextY int
	Label              string
}

// WaterfallEntry is a phase in the legend.
type WaterfallEntry struct {
	WaterfallBar
	TextX, TextY int
	Meaning      Text
}

// The geometry of waterfalls, in pixels of the SVG.
const (
	waterfallWidth = 720
	// waterfallLeft and waterfallRight are the ends of the longest row.
	waterfallLeft, waterfallRight = 222, 650
	waterfallRow                  = 32
	// phaseHeight is the height of a phase, and laneHeight the height of one that runs at the same time as others.
	phaseHeight, laneHeight = 14, 4
	// longestNode is the number of characters left of the bars.
	longestNode = 26
	// fewestLines is the number of lines that fit well.
	fewestLines                 = 6
	legendColumns, legendHeight = 2, 20
)

// lanes are the distances of phases that run at the same time from the top of a row.
var lanes = map[latency.Lane]int{
	latency.Initializing: phaseHeight + 2, latency.Booting: phaseHeight + 2, latency.Networking: phaseHeight + laneHeight + 4,
}

// phaseTexts are the phases' names and meanings, which are the words of `croft latency` in English.
var phaseTexts = map[latency.Phase]struct{ name, meaning Text }{
	latency.Decision:       {T("decision"), T("Karpenter decides")},
	latency.Launch:         {T("launch"), T("cloud accepts the instance")},
	latency.Boot:           {T("boot"), T("instance boots, kubelet registers")},
	latency.Ready:          {T("ready"), T("network plugin starts, node turns Ready")},
	latency.Initialization: {T("initialization"), T("startup taints, devices")},
	latency.Scheduling:     {T("scheduling"), T("pod is scheduled")},
	latency.Start:          {T("start"), T("pod starts and turns Ready")},
	latency.VMStart:        {T("vm start"), T("machine starts, kernel boots")},
	latency.System:         {T("system"), T("system starts, before user data")},
	latency.UserData:       {T("user data"), T("user data runs")},
	latency.Nodeadm:        {T("nodeadm"), T("nodeadm sets up the node")},
	latency.Containerd:     {T("containerd"), T("containerd starts")},
	latency.Kubelet:        {T("kubelet"), T("kubelet starts, and registers")},
	latency.Interfaces:     {T("interfaces"), T("cloud attaches interfaces")},
	latency.Links:          {T("links"), T("agent sets up links")},
	latency.Networks:       {T("networks"), T("operator lets pods onto the node")},
	// The totals are only in tables.
	latency.PodToNodeReady: {name: T("pod to node ready")},
	latency.PodToPodReady:  {name: T("pod to pod ready")},
}

// drawWaterfall returns the picture of nodes, or nil without any time.
func drawWaterfall(nodes []latency.Timeline) *Waterfall {
	longest := 0.0
	for i := range nodes {
		longest = max(longest, nodes[i].TotalSeconds())
	}
	if longest == 0 {
		return nil
	}
	scale := (waterfallRight - waterfallLeft) / longest
	toX := func(seconds float64) int { return waterfallLeft + int(seconds*scale+.5) }
	w := &Waterfall{
		Title: T("Where the time of the nodes went"), Width: waterfallWidth,
		Description: T("A row for each node, from its first event to its last, with its phases. The table has the same data."),
	}
	used := map[latency.Phase]bool{}
	y := 0
	for i := range nodes {
		if len(nodes[i].Events) == 0 {
			continue
		}
		w.Rows = append(w.Rows, drawRow(&nodes[i], y, toX))
		for _, b := range w.Rows[len(w.Rows)-1].Bars {
			used[b.Phase] = true
		}
		y += waterfallRow
	}
	step := latency.FindRoundStep(longest / fewestLines)
	for at := 0.0; at <= longest; at += step {
		w.Lines = append(w.Lines, WaterfallLine{X: toX(at), From: 0, To: y, TextY: y + labelBelow - 4, Label: latency.FormatSeconds(at)})
	}
	w.Height = y + labelBelow
	w.addLegend(used)
	return w
}

func drawRow(t *latency.Timeline, y int, toX func(float64) int) WaterfallRow {
	end := toX(t.TotalSeconds())
	row := WaterfallRow{
		Name: t.Title(), Longest: longestNode, Total: t.FormatTotal(), NameX: waterfallLeft - 8, TextY: y + phaseHeight - 3, TotalX: end + 6,
		Known: WaterfallBar{X: waterfallLeft, Y: y + phaseHeight/2 - 2, Width: end - waterfallLeft, Height: laneHeight},
	}
	for _, b := range t.Bars() {
		x := toX(b.Begin)
		bar := WaterfallBar{Phase: b.Phase, X: x, Y: y, Width: max(1, toX(b.Begin+b.Seconds)-x), Height: phaseHeight}
		if b.Lane != latency.Main {
			bar.Y, bar.Height = y+lanes[b.Lane], laneHeight
		}
		texts := phaseTexts[b.Phase]
		bar.Caption = T("%s %s: %s", texts.name, latency.FormatSeconds(b.Seconds), texts.meaning)
		row.Bars = append(row.Bars, bar)
	}
	return row
}

// addLegend explains the used phases below the rows.
func (w *Waterfall) addLegend(used map[latency.Phase]bool) {
	top := w.Height + 8
	add := func(bar WaterfallBar, meaning Text) {
		i := len(w.Legend)
		bar.X, bar.Y = i%legendColumns*waterfallWidth/legendColumns, top+i/legendColumns*legendHeight
		w.Legend = append(w.Legend, WaterfallEntry{WaterfallBar: bar, TextX: bar.X + 20, TextY: bar.Y + 11, Meaning: meaning})
		w.Height = bar.Y + legendHeight
	}
	for _, d := range latency.Definitions() {
		if texts := phaseTexts[d.Phase]; used[d.Phase] {
			add(WaterfallBar{Phase: d.Phase, Width: 12, Height: 12}, T("%s: %s", texts.name, texts.meaning))
		}
	}
	add(WaterfallBar{Width: 12, Height: laneHeight}, T("no known phase; … not Ready as far as is known"))
}

// Class returns the bar's class of the style sheet.
func (b WaterfallBar) Class() string {
	if b.Phase == "" {
		return "unknown"
	}
	return "phase-" + strings.ReplaceAll(string(b.Phase), "_", "-")
}
