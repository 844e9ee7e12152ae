package page

import (
	"fmt"

	"croft.dev/croft/internal/dashboard/connections"
	"croft.dev/croft/internal/diagnose/why"
)

// Diagram shows the namespace between its peers: sources on the left, and destinations on the
// right. The table next to it has the same data as text.
type Diagram struct {
	Title, Description string
	Width, Height      int
	Boxes              []Box
	Arrows             []Arrow
}

// Box is a labelled rectangle. Label is shortened to its width.
type Box struct {
	X, Y, Width, Height int
	TextX, TextY        int
	Label               string
}

// Arrow is a horizontal line that ends with a head, or with a cross if the connection is denied.
type Arrow struct {
	From, To, Y int
	Verdict     why.Verdict
}

// The measures of a diagram, in units of its own.
const (
	peerWidth, centreWidth, gapWidth = 230, 150, 70
	boxHeight, rowHeight             = 26, 34
	// mostPeers is the maximum number of peers on each side.
	mostPeers = 20
	// longestLabel is the number of characters that fit into a box.
	longestLabel = 28
)

func newDiagram(s *connections.Snapshot, peers []connections.Peer) *Diagram {
	d := &Diagram{Title: "Connections of " + s.Namespace, Width: 2*peerWidth + centreWidth + 2*gapWidth}
	left, right := 0, 0
	allowed := 0
	const centreX = peerWidth + gapWidth
	for _, p := range peers {
		if p.From != nil && left < mostPeers {
			d.addBox(0, left, describePeer(p, s))
			d.Arrows = append(d.Arrows, Arrow{peerWidth, centreX, findMiddle(left), newConnectionCell(p, p.From).Verdict})
			left++
		}
		if right < mostPeers {
			d.addBox(centreX+centreWidth+gapWidth, right, describePeer(p, s))
			d.Arrows = append(d.Arrows, Arrow{centreX + centreWidth, centreX + centreWidth + gapWidth, findMiddle(right), newConnectionCell(p, p.To).Verdict})
			right++
		}
	}
	for _, a := range d.Arrows {
		if a.Verdict != "" {
			allowed++
		}
	}
	d.Height = max(left, right) * rowHeight
	d.Boxes = append(d.Boxes, Box{centreX, 0, centreWidth, d.Height - (rowHeight - boxHeight), centreX + 8, d.Height / 2, shortenLabel(s.Namespace, centreWidth/8)})
	d.Description = fmt.Sprintf("Sources are on the left, destinations on the right. %d of %d connections are allowed. The table has the same data.", allowed, len(d.Arrows))
	return d
}

func (d *Diagram) addBox(x, row int, label string) {
	d.Boxes = append(d.Boxes, Box{x, row * rowHeight, peerWidth, boxHeight, x + 8, findMiddle(row) + 4, shortenLabel(label, longestLabel)})
}

// findMiddle returns the middle of the boxes in a row.
func findMiddle(row int) int { return row*rowHeight + boxHeight/2 }

// Cross returns the position of the cross in a denied connection.
func (a Arrow) Cross() int { return (a.From + a.To) / 2 }

// Head returns the corners of the arrow's head.
func (a Arrow) Head() string {
	return fmt.Sprintf("%d,%d %d,%d %d,%d", a.To, a.Y, a.To-9, a.Y-5, a.To-9, a.Y+5)
}

func shortenLabel(text string, most int) string {
	runes := []rune(text)
	if len(runes) <= most {
		return text
	}
	return string(runes[:most-1]) + "…"
}
