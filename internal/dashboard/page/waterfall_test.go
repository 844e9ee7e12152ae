package page

import (
	"bytes"
	"testing"
	"time"

	"croft.dev/croft/internal/diagnose/latency"
)

// TestPhases expects the words of `croft latency` for each phase, and a colour for each phase of the picture.
func TestPhases(t *testing.T) {
	for _, d := range latency.Definitions() {
		texts, shown := phaseTexts[d.Phase]
		if d.Phase == latency.ClaimToNodeReady {
			continue // neither the command's table nor the page has it
		}
		if !shown || texts.name.In(English) != d.Phase.Title() {
			t.Errorf("phase %s has the name %q", d.Phase, texts.name.In(English))
		}
		if d.Lane == latency.Totals {
			continue
		}
		if texts.meaning.In(English) != d.Description {
			t.Errorf("phase %s: %q, and croft latency has %q", d.Phase, texts.meaning.In(English), d.Description)
		}
		if rule := ".diagram ." + (WaterfallBar{Phase: d.Phase}).Class() + " {"; !bytes.Contains(Style, []byte(rule)) {
			t.Errorf("the style sheet has no rule %s", rule)
		}
	}
}

// TestWaterfall expects bars in proportion to their times, within the picture, and no picture without times.
func TestWaterfall(t *testing.T) {
	event := func(name string, seconds float64) latency.Event { return latency.Event{Name: name, Seconds: seconds} }
	nodes := []latency.Timeline{
		{Node: "slow", Events: []latency.Event{event(latency.ClaimCreated, 0), event(latency.ClaimLaunched, 25), event(latency.NodeReady, 100)}},
		{Claim: "unknown"},
		{Claim: "waits", Events: []latency.Event{event(latency.ClaimCreated, 0), event(latency.ClaimLaunched, 50)}},
	}
	for i := range nodes {
		nodes[i].Phases = map[latency.Phase]float64{}
		for j := range nodes[i].Events {
			e := &nodes[i].Events[j]
			e.Time = time.Unix(0, 0).Add(time.Duration(e.Seconds) * time.Second)
		}
	}
	nodes[0].Phases[latency.Launch], nodes[2].Phases[latency.Launch] = 25, 50
	w := drawWaterfall(nodes)
	if len(w.Rows) != 2 || len(w.Lines) != 4 || len(w.Legend) != 2 {
		t.Fatalf("%d rows, %d lines, %d entries of the legend", len(w.Rows), len(w.Lines), len(w.Legend))
	}
	const all = waterfallRight - waterfallLeft
	for i, want := range []WaterfallBar{
		{Phase: latency.Launch, X: waterfallLeft, Y: 0, Width: all / 4, Height: phaseHeight}, {Phase: latency.Launch, X: waterfallLeft, Y: waterfallRow, Width: all / 2, Height: phaseHeight},
	} {
		got := w.Rows[i].Bars[0]
		got.Caption = nil
		if got.Phase != want.Phase || got.X != want.X || got.Y != want.Y || got.Width != want.Width || got.Height != want.Height {
			t.Errorf("row %d: got %+v, want %+v", i, got, want)
		}
	}
	if slow, waits := w.Rows[0], w.Rows[1]; slow.Total != "100s" || waits.Total != "50s …" || slow.Known.Width != all || waits.Known.Width != all/2 {
		t.Errorf("got %+v and %+v", slow, waits)
	}
	for _, e := range w.Legend {
		if e.Y+e.Height > w.Height || e.X > w.Width {
			t.Errorf("an entry of the legend is outside: %+v", e)
		}
	}
	if drawWaterfall(nodes[1:2]) != nil {
		t.Error("there is a picture without times")
	}
}
