package cli

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"croft.dev/croft/internal/diagnose/latency"
)

// listLatencyColumns returns the phases that a table shows.
func listLatencyColumns(wide bool) []latency.Definition {
	return slices.DeleteFunc(latency.Definitions(), func(d latency.Definition) bool { return !wide && d.IsWide() })
}

func formatColumnTitle(d latency.Definition) string { return strings.ToUpper(d.Phase.Title()) }

func (a *app) printLatencyTables(nodes []latency.Timeline, groups []latency.Group, wide bool) {
	if len(nodes) == 0 {
		return
	}
	columns := slices.DeleteFunc(listLatencyColumns(wide),
		func(d latency.Definition) bool { return d.Phase == latency.ClaimToNodeReady })
	header := []string{"NODE", "POOL", "TYPE", "POD"}
	for _, d := range columns {
		header = append(header, formatColumnTitle(d))
	}
	var rows [][]string
	for i := range nodes {
		t := &nodes[i]
		row := []string{t.Title(), dashIfEmpty(t.Pool), dashIfEmpty(t.InstanceType), dashIfEmpty(t.Pod)}
		for _, d := range columns {
			cell := "-"
			if seconds, known := t.Phases[d.Phase]; known {
				cell = latency.FormatSeconds(seconds)
			}
			row = append(row, cell)
		}
		rows = append(rows, row)
	}
	printTable(a.out, header, rows)
	for i := range nodes {
		for _, note := range nodes[i].Notes {
			printSafely(a.out, "%s: %s\n", nodes[i].Title(), note)
		}
	}
	printSafely(a.out, "\np50/p90/p99 in seconds:\n")
	header, rows = buildLatencySummary(groups, wide)
	printTable(a.out, header, rows)
}

// buildLatencySummary returns the table of percentiles.
func buildLatencySummary(groups []latency.Group, wide bool) (header []string, rows [][]string) {
	header = []string{"BY", "VALUE", "NODES"}
	for _, d := range listLatencyColumns(wide) {
		header = append(header, formatColumnTitle(d))
	}
	words := map[string]string{"instanceType": "instance type"}
	for _, g := range groups {
		by := g.By
		if words[by] != "" {
			by = words[by]
		}
		row := []string{by, dashIfEmpty(g.Value), strconv.Itoa(g.Nodes)}
		for _, d := range listLatencyColumns(wide) {
			cell := "-"
			if p, known := g.Phases[d.Phase]; known {
				cell = formatDecimal(p.P50) + "/" + formatDecimal(p.P90) + "/" + formatDecimal(p.P99)
			}
			row = append(row, cell)
		}
		rows = append(rows, row)
	}
	return header, rows
}

func formatDecimal(seconds float64) string { return strconv.FormatFloat(seconds, 'f', -1, 64) }

// printLatencyMarkdown prints a table with the columns of node-latency-for-k8s.
func (a *app) printLatencyMarkdown(nodes []latency.Timeline, groups []latency.Group) {
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
		printSafely(a.out, "### %s\n\n", escapeMarkdown(title))
		var rows [][]string
		for _, e := range t.Events {
			rows = append(rows, []string{e.Name, e.Time.Format(time.RFC3339), latency.FormatSeconds(e.Seconds), e.Comment})
		}
		a.printMarkdownTable([]string{"EVENT", "TIMESTAMP", "T", "COMMENT"}, rows)
		for _, note := range t.Notes {
			printSafely(a.out, "\n%s\n", escapeMarkdown(note))
		}
		printSafely(a.out, "\n")
	}
	printSafely(a.out, "### p50/p90/p99 in seconds\n\n")
	a.printMarkdownTable(buildLatencySummary(groups, true))
}

func (a *app) printMarkdownTable(header []string, rows [][]string) {
	widths := make([]int, len(header))
	all := append([][]string{header}, rows...)
	for _, row := range all {
		for i := range row {
			row[i] = strings.ReplaceAll(escapeMarkdown(row[i]), "|", `\|`)
			widths[i] = max(widths[i], len([]rune(row[i])))
		}
	}
	for n, row := range all {
		for i, cell := range row {
			printSafely(a.out, "| %s%s ", cell, strings.Repeat(" ", widths[i]-len([]rune(cell))))
		}
		printSafely(a.out, "|\n")
		if n > 0 {
			continue
		}
		for _, width := range widths {
			printSafely(a.out, "|%s", strings.Repeat("-", width+2))
		}
		printSafely(a.out, "|\n")
	}
}

// escapeMarkdown escapes a text for one line of Markdown, since tenants choose the names of
// objects.
func escapeMarkdown(text string) string {
	return strings.NewReplacer("<", "&lt;", "`", "\\`", "[", `\[`).Replace(escapeLine(text))
}
