package page

import (
	"cmp"
	"slices"
	"time"

	"croft.dev/croft/internal/dashboard/nodes"
	"croft.dev/croft/internal/diagnose/latency"
)

// NewStarts returns the page of the nodes that were requested last, with the phases of `croft latency`.
func NewStarts(s *nodes.Starts, now time.Time) Page {
	p := Page{Title: T("Starts of nodes"), Heading: T("Starts of nodes"), Commands: []string{"croft latency --since 0"}}
	if s.Pool != "" {
		p.Title, p.Heading = T("Starts of nodes of pool %s", s.Pool), T("Starts of nodes of pool %s", s.Pool)
		p.Commands = []string{"croft latency --since 0 --pool " + s.Pool}
	}
	p.Commands = append(p.Commands, p.Commands[0]+" -o wide")
	body := Sections{listStarts(s, now)}
	if wide := listWidePhases(s.Timelines); len(wide.Rows) > 0 {
		body = append(body, wide)
	}
	if notes := listNotes(s.Timelines); len(notes.List) > 0 {
		body = append(body, notes)
	}
	p.Body = body
	return p
}

// listStarts lists the phases that every node has.
func listStarts(s *nodes.Starts, now time.Time) Section {
	t := Section{
		Heading: T("Phases"), Head: listHeads("Node", "Pool", "Instance", "Age", "Pod"), Waterfall: drawWaterfall(s.Timelines),
		Note:  T("A phase is - if the cluster lacks one of its times: it keeps events for an hour, and no times of deleted pods and nodes."),
		Empty: noNodes,
	}
	if s.More > 0 {
		t.Note = append(t.Note, T("%d older nodes are not shown.", s.More)...)
	}
	if len(s.Hidden) > 0 {
		t.Note = append(describeHidden(s.Hidden), T("Ask a platform admin for all phases: croft latency.")...)
	}
	columns := slices.DeleteFunc(latency.Definitions(), func(d latency.Definition) bool {
		return d.IsWide() || d.Phase == latency.ClaimToNodeReady // as in the table of the command
	})
	addPhases(&t, columns, s.Timelines, func(l *latency.Timeline) []Cell {
		requested := time.Time{}
		if len(l.Events) > 0 {
			requested = l.Events[0].Time
		}
		return []Cell{
			{Text: cmp.Or(l.Node, "nodeclaim/"+l.Claim)}, {Text: cmp.Or(l.Pool, "-")}, {Text: cmp.Or(l.InstanceType, "-")}, newAgeCell(requested, now),
			{Text: cmp.Or(l.Pod, "-")},
		}
	})
	return t
}

// listWidePhases lists the phases of the boot and of secondary networks that a node has.
func listWidePhases(all []latency.Timeline) Section {
	t := Section{Heading: T("Boot and secondary networks"), Head: listHeads("Node")}
	columns := slices.DeleteFunc(latency.Definitions(), func(d latency.Definition) bool {
		return !d.IsWide() || !slices.ContainsFunc(all, func(l latency.Timeline) bool { _, known := l.Phases[d.Phase]; return known })
	})
	if len(columns) > 0 {
		addPhases(&t, columns, all, func(l *latency.Timeline) []Cell { return []Cell{{Text: l.Title()}} })
	}
	return t
}

// addPhases adds a row for each node: its first cells, and the phases.
func addPhases(t *Section, columns []latency.Definition, all []latency.Timeline, newCells func(*latency.Timeline) []Cell) {
	for _, d := range columns {
		t.Head = append(t.Head, phaseTexts[d.Phase].name)
	}
	for i := range all {
		row := newCells(&all[i])
		for _, d := range columns {
			cell := Cell{Text: "-"} // as in the table of the command
			if seconds, known := all[i].Phases[d.Phase]; known {
				cell = Cell{Text: latency.FormatSeconds(seconds)}
			}
			row = append(row, cell)
		}
		t.Rows = append(t.Rows, row)
	}
}

// listNotes lists the reasons why values are absent.
func listNotes(all []latency.Timeline) Section {
	t := Section{Heading: T("Missing times")}
	for i := range all {
		for _, note := range all[i].Notes {
			t.List = append(t.List, Raw(all[i].Title()+": "+note))
		}
	}
	return t
}
