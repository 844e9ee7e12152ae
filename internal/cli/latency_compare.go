package cli

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"croft.dev/croft/internal/declare/wording"
	"croft.dev/croft/internal/diagnose/latency"
)

// readSavedNodes reads the nodes to compare with. It returns none without --against.
func (a *app) readSavedNodes(o latencyOptions) ([]latency.Timeline, error) {
	if o.needsComparison() && (o.output == formatSVG || o.output == formatPrometheus || o.output == formatWide) {
		return nil, fmt.Errorf("-o %s: not supported for comparisons: write table, markdown or json", o.output)
	}
	switch {
	case o.against == "" && o.againstPool != "" && o.pool == "":
		return nil, fmt.Errorf("--against-pool %s: add --pool, the pool to compare with it", o.againstPool)
	case o.against == "" && o.againstPool != "" && o.pool == o.againstPool:
		return nil, fmt.Errorf("--against-pool %s: the pool is the one of --pool; name another", o.againstPool)
	case o.against == "":
		return nil, nil
	}
	text, err := readFile(o.against, a.in)
	if err != nil {
		return nil, fmt.Errorf("--against %w", err)
	}
	var saved struct{ Nodes *[]latency.Timeline }
	if err := json.Unmarshal(text, &saved); err != nil || saved.Nodes == nil {
		return nil, fmt.Errorf("--against %s: the file is not an output of croft latency -o json", o.against)
	}
	return *saved.Nodes, nil
}

// compareLatency prints nodes next to the nodes that they are compared with.
func (a *app) compareLatency(with, nodes []latency.Timeline, o latencyOptions) error {
	pool := o.againstPool
	if pool == "" {
		pool = o.pool
	}
	before, after := side{o.against, pool, latency.FilterByPool(with, pool)}, side{"", o.pool, nodes}
	for _, s := range []side{before, after} {
		if len(s.nodes) == 0 {
			return failuref("there is nothing to compare: %s", s)
		}
	}
	phases := latency.Compare(before.nodes, after.nodes)
	if o.output == formatJSON {
		return o.output.print(a.out, map[string]any{"before": before.toData(), "after": after.toData(), "phases": phases})
	}
	printSafely(a.out, "before: %s; after: %s\n\n", before, after)
	header := []string{"PHASE", "NODES", "P50 BEFORE", "P50 AFTER", "DIFFERENCE", "RATIO", "P90 BEFORE", "P90 AFTER",
		"DIFFERENCE", "RATIO"}
	var rows [][]string
	for _, d := range phases {
		was, is := d.Before, d.After
		row := []string{d.Phase.Title(), formatPhaseCount(was) + "/" + formatPhaseCount(is)}
		row = append(row, formatComparison(was, is, d.P50, func(p *latency.Percentiles) float64 { return p.P50 })...)
		row = append(row, formatComparison(was, is, d.P90, func(p *latency.Percentiles) float64 { return p.P90 })...)
		rows = append(rows, row)
	}
	if o.output == formatMarkdown {
		a.printMarkdownTable(header, rows)
	} else {
		printTable(a.out, header, rows)
	}
	return nil
}

// side is one side of a comparison.
type side struct {
	file, pool string
	nodes      []latency.Timeline
}

func (s side) String() string {
	text := "no node"
	if len(s.nodes) > 0 {
		text = wording.FormatCount(len(s.nodes), "node")
	}
	if s.pool != "" {
		text += " of pool " + s.pool
	}
	if s.file != "" {
		text += " in " + s.file
	}
	return text
}

func (s side) toData() map[string]any {
	data := map[string]any{"nodes": len(s.nodes)}
	if s.pool != "" {
		data["pool"] = s.pool
	}
	if s.file != "" {
		data["file"] = s.file
	}
	return data
}

// formatPhaseCount returns the number of nodes that have a phase.
func formatPhaseCount(p *latency.Percentiles) string {
	if p == nil {
		return "0"
	}
	return strconv.Itoa(p.Count)
}

// formatComparison returns the four cells of a percentile.
func formatComparison(was, is *latency.Percentiles, c *latency.Change, of func(*latency.Percentiles) float64) []string {
	cells := []string{"-", "-", "-", "-"}
	if was != nil {
		cells[0] = latency.FormatSeconds(of(was))
	}
	if is != nil {
		cells[1] = latency.FormatSeconds(of(is))
	}
	if c == nil {
		return cells
	}
	switch {
	case c.Seconds > 0:
		cells[2] = "+" + latency.FormatSeconds(c.Seconds)
	case c.Seconds < 0:
		cells[2] = "-" + latency.FormatSeconds(-c.Seconds)
	default:
		cells[2] = "0s"
	}
	if c.Ratio != nil {
		cells[3] = strings.TrimSuffix(strconv.FormatFloat(*c.Ratio, 'f', 2, 64), ".00") + "x"
	}
	return cells
}
