package page

import (
	"fmt"

	"croft.dev/croft/internal/dashboard/connections"
	"croft.dev/croft/internal/diagnose/why"
	"croft.dev/croft/internal/observe/netpol"
)

// Diagram shows the namespace between its peers: sources on the left, and destinations on the
// right. The table next to it has the same data as text.
type Diagram struct {
	Title, Description Text
	Width, Height      int
	Boxes              []Box
	Arrows             []Arrow
	// Legend explains the styles of the arrows.
	Legend []LegendEntry
}

// Box is a labelled rectangle. Its label is shortened to Longest characters, which fit into it.
type Box struct {
	X, Y, Width, Height int
	TextX, TextY        int
	Label               Text
	Longest             int
}

// Arrow is a horizontal line that ends with a head. A denied connection has a cross instead.
type Arrow struct {
	From, To, Y int
	Style       arrowStyle
}

// LegendEntry is an arrow with its meaning, at TextX.
type LegendEntry struct {
	Arrow
	TextX   int
	Meaning Text
}

// arrowStyle is a class of the style sheet.
type arrowStyle string

// The styles differ in their lines and ends, and not only in their colours.
const (
	styleAllowed arrowStyle = "good"
	styleHole    arrowStyle = "bad"
	styleDenied  arrowStyle = "denied"
	stylePeer    arrowStyle = "peer"
)

// meanings are the meanings of the styles, in the order of the legend.
var meanings = []struct {
	style   arrowStyle
	meaning Text
}{
	{styleAllowed, canConnect}, {styleHole, T("can connect, and should not")}, {styleDenied, cannotConnect}, {stylePeer, otherTenantDecides},
}

// The measures of a diagram, in units of its own.
const (
	peerWidth, centreWidth, gapWidth = 230, 150, 70
	boxHeight, rowHeight             = 26, 34
	// mostPeers is the maximum number of peers on each side.
	mostPeers = 20
	// legendLine is the length of an arrow in the legend.
	legendLine = 50
	// longestLabel is the number of characters that fit into a box.
	longestLabel = 28
)

func newDiagram(s *connections.Snapshot, peers []connections.Peer) *Diagram {
	d := &Diagram{Title: T("Connections of %s", s.Namespace), Width: 2*peerWidth + centreWidth + 2*gapWidth}
	left, right := 0, 0
	count := map[arrowStyle]int{}
	const centreX = peerWidth + gapWidth
	for _, p := range peers {
		if p.From != nil && left < mostPeers {
			d.addBox(0, left, describePeer(p, s))
			d.Arrows = append(d.Arrows, Arrow{peerWidth, centreX, findMiddle(left), chooseStyle(p, p.From)})
			left++
		}
		if right < mostPeers {
			d.addBox(centreX+centreWidth+gapWidth, right, describePeer(p, s))
			d.Arrows = append(d.Arrows, Arrow{centreX + centreWidth, centreX + centreWidth + gapWidth, findMiddle(right), chooseStyle(p, p.To)})
			right++
		}
	}
	for _, a := range d.Arrows {
		count[a.Style]++
	}
	d.Height = max(left, right) * rowHeight
	d.Boxes = append(d.Boxes, Box{centreX, 0, centreWidth, d.Height - (rowHeight - boxHeight), centreX + 8, d.Height / 2, Raw(s.Namespace), centreWidth / 8})
	d.Description = T("Sources are on the left, destinations on the right. %d of %d connections are allowed.", count[styleAllowed]+count[styleHole], len(d.Arrows))
	if n := count[stylePeer]; n > 0 {
		d.Description = append(d.Description, T("About %d of them, the other tenant decides.", n)...)
	}
	d.Description = append(d.Description, T("The table has the same data.")...)
	d.addLegend(count)
	return d
}

// addLegend adds the styles of the diagram below its boxes, two in a row.
func (d *Diagram) addLegend(count map[arrowStyle]int) {
	top := d.Height
	for _, m := range meanings {
		if count[m.style] == 0 {
			continue
		}
		i := len(d.Legend)
		x, y := i%2*d.Width/2, top+findMiddle(i/2)
		d.Legend = append(d.Legend, LegendEntry{Arrow{x, x + legendLine, y, m.style}, x + legendLine + 12, m.meaning})
		d.Height = top + (i/2+1)*rowHeight
	}
}

// chooseStyle returns the style of a connection. It has the verdict of the table.
func chooseStyle(p connections.Peer, v *netpol.Verdict) arrowStyle {
	switch cell := newConnectionCell(p, v); {
	case cell.Verdict == why.Bad:
		return styleHole
	case cell.Verdict == why.Good:
		return styleAllowed
	case v.Allowed:
		return stylePeer
	default:
		return styleDenied
	}
}

// IsDenied reports whether the arrow has a cross.
func (a Arrow) IsDenied() bool { return a.Style == styleDenied }

// TextY returns the position of the meaning.
func (e LegendEntry) TextY() int { return e.Y + 4 }

func (d *Diagram) addBox(x, row int, label Text) {
	d.Boxes = append(d.Boxes, Box{x, row * rowHeight, peerWidth, boxHeight, x + 8, findMiddle(row) + 4, label, longestLabel})
}

// findMiddle returns the middle of the boxes in a row.
func findMiddle(row int) int { return row*rowHeight + boxHeight/2 }

// Cross returns the position of the cross in a denied connection.
func (a Arrow) Cross() int { return (a.From + a.To) / 2 }

// Head returns the corners of the arrow's head.
func (a Arrow) Head() string {
	return fmt.Sprintf("%d,%d %d,%d %d,%d", a.To, a.Y, a.To-9, a.Y-5, a.To-9, a.Y+5)
}

// shortenLabel returns the first characters of a label.
func shortenLabel(text string, most int) string {
	runes := []rune(text)
	if len(runes) <= most {
		return text
	}
	return string(runes[:most-1]) + "…"
}
