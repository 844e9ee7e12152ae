package cli

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"croft.dev/croft/internal/latency"
)

// latencyColumns returns the phases that a table shows.
func latencyColumns(wide bool) []latency.Definition {
	return slices.DeleteFunc(latency.Definitions(), func(d latency.Definition) bool { return !wide && d.Wide() })
}

func columnTitle(d latency.Definition) string { return strings.ToUpper(d.Phase.Title()) }

func (a *app) latencyTables(nodes []latency.Timeline, groups []latency.Group, wide bool) {
	if len(nodes) == 0 {
		return
	}
	columns := slices.DeleteFunc(latencyColumns(wide),
		func(d latency.Definition) bool { return d.Phase == latency.ClaimToNodeReady })
	header := []string{"NODE", "POOL", "TYPE", "POD"}
	for _, d := range columns {
		header = append(header, columnTitle(d))
	}
	var rows [][]string
	for i := range nodes {
		t := &nodes[i]
		row := []string{t.Title(), orDash(t.Pool), orDash(t.InstanceType), orDash(t.Pod)}
		for _, d := range columns {
			cell := "-"
			if seconds, known := t.Phases[d.Phase]; known {
				cell = latency.Seconds(seconds)
			}
			row = append(row, cell)
		}
		rows = append(rows, row)
	}
	table(a.out, header, rows)
	for i := range nodes {
		for _, note := range nodes[i].Notes {
			say(a.out, "%s: %s\n", nodes[i].Title(), note)
		}
	}
	say(a.out, "\np50/p90/p99 in seconds:\n")
	header, rows = latencySummary(groups, wide)
	table(a.out, header, rows)
}

// latencySummary returns the table of percentiles.
func latencySummary(groups []latency.Group, wide bool) (header []string, rows [][]string) {
	header = []string{"BY", "VALUE", "NODES"}
	for _, d := range latencyColumns(wide) {
		header = append(header, columnTitle(d))
	}
	words := map[string]string{"instanceType": "instance type"}
	for _, g := range groups {
		by := g.By
		if words[by] != "" {
			by = words[by]
		}
		row := []string{by, orDash(g.Value), strconv.Itoa(g.Nodes)}
		for _, d := range latencyColumns(wide) {
			cell := "-"
			if p, known := g.Phases[d.Phase]; known {
				cell = decimal(p.P50) + "/" + decimal(p.P90) + "/" + decimal(p.P99)
			}
			row = append(row, cell)
		}
		rows = append(rows, row)
	}
	return header, rows
}

func decimal(seconds float64) string { return strconv.FormatFloat(seconds, 'f', -1, 64) }

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// latencyMarkdown prints a table with the columns of node-latency-for-k8s.
func (a *app) latencyMarkdown(nodes []latency.Timeline, groups []latency.Group) {
	if len(nodes) == 0 {
		return
	}
	for i := range nodes {
		t := &nodes[i]
		title := t.Title()
		if t.InstanceID != "" && t.InstanceID != title {
			title += " | " + t.InstanceID
		}
		if t.Address != "" {
			title += " (" + t.Address + ")"
		}
		for _, part := range []string{t.InstanceType, t.Architecture, t.Zone, t.Image} {
			if part != "" {
				title += " | " + part
			}
		}
		say(a.out, "### %s\n\n", markdownText(title))
		var rows [][]string
		for _, e := range t.Events {
			rows = append(rows, []string{e.Name, e.Time.Format(time.RFC3339), latency.Seconds(e.Seconds), e.Comment})
		}
		a.markdownTable([]string{"EVENT", "TIMESTAMP", "T", "COMMENT"}, rows)
		for _, note := range t.Notes {
			say(a.out, "\n%s\n", markdownText(note))
		}
		say(a.out, "\n")
	}
	say(a.out, "### p50/p90/p99 in seconds\n\n")
	a.markdownTable(latencySummary(groups, true))
}

func (a *app) markdownTable(header []string, rows [][]string) {
	widths := make([]int, len(header))
	all := append([][]string{header}, rows...)
	for _, row := range all {
		for i := range row {
			row[i] = strings.ReplaceAll(markdownText(row[i]), "|", `\|`)
			widths[i] = max(widths[i], len([]rune(row[i])))
		}
	}
	for n, row := range all {
		for i, cell := range row {
			say(a.out, "| %s%s ", cell, strings.Repeat(" ", widths[i]-len([]rune(cell))))
		}
		say(a.out, "|\n")
		if n > 0 {
			continue
		}
		for _, width := range widths {
			say(a.out, "|%s", strings.Repeat("-", width+2))
		}
		say(a.out, "|\n")
	}
}

// markdownText escapes a text for one line of Markdown, since tenants choose the names of
// objects.
func markdownText(text string) string {
	return strings.NewReplacer("<", "&lt;", "`", "\\`", "[", `\[`).Replace(inline(text))
}
