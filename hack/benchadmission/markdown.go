package main

import (
	"fmt"
	"strings"

	"croft.dev/croft/hack/internal/machine"
	"croft.dev/croft/hack/internal/samples"
)

// renderMarkdown returns the results as Markdown, as in the documentation.
func (r report) renderMarkdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Measured on %s, on %s, Gatekeeper %s. %d pods for each line and size one at a time, %d by %d clients; %.0f minutes in all.\n\n",
		r.Started.UTC().Format("2006-01-02"), r.Machine, r.Gatekeeper, r.Rounds, r.Pods, r.Clients, r.Seconds/60)
	for _, verdict := range r.listVerdicts() {
		fmt.Fprintf(&b, "- %s\n", verdict)
	}
	fmt.Fprintf(&b, "\n![%s](%s)\n", plotTitle, plotFile)
	if len(r.Growth) > 0 {
		fmt.Fprintf(&b, "\n### %s as tenants grow in number\n\n%s", native, r.renderGrowth())
	}
	for _, c := range r.Comparisons {
		fmt.Fprintf(&b, "\n### %s beside %s\n\n%s\n%s", c.Name, native, c.renderTimes(r.Clients), c.renderMemory())
	}
	if kills := r.renderKills(); kills != "" {
		fmt.Fprintf(&b, "\n### While the engine is killed\n\n%s", kills)
	}
	return b.String()
}

// renderGrowth returns a row for each size, compared with the smallest.
func (r report) renderGrowth() string {
	t := table{head: []string{"tenants", "no policy", "native adds", "beside " + formatTenants(r.Growth[0].Tenants) + ": no policy", "native adds", "it adds more", "95% interval"}}
	for _, g := range r.Growth {
		row := []string{fmt.Sprint(g.Tenants)}
		for _, lines := range [][]lineResult{g.Many, g.Few} {
			row = append(row, formatMilliseconds(samples.Median(findResult(lines, noPolicy).Milliseconds)), formatMilliseconds(computeInterval(computeAdded(lines, native)).Median))
		}
		d := g.compareCosts()
		t.addRow(append(row, fmt.Sprintf("%+.2f ms", d.Median), fmt.Sprintf("%+.2f to %+.2f", d.Low, d.High))...)
	}
	return t.String()
}

// renderTimes returns the durations of pod creations.
func (c comparisonResult) renderTimes(clients int) string {
	t := table{head: []string{"tenants", "pods", "median", "p99", "adds (median of pairs)", "95% interval", fmt.Sprintf("pods/s, %d clients", clients)}, left: 2}
	for _, s := range c.Sizes {
		for _, m := range s.Lines {
			added, between := "", ""
			if m.Name != noPolicy {
				cost := s.computeCost(m.Name)
				added, between = formatMilliseconds(cost.Median), fmt.Sprintf("%.2f–%.2f", cost.Low, cost.High)
			}
			t.addRow(fmt.Sprint(s.Tenants), m.Name, formatMilliseconds(samples.Median(m.Milliseconds)), formatMilliseconds(samples.Percentile(99, m.Milliseconds)),
				added, between, fmt.Sprintf("%.0f", m.PodsPerSecond))
		}
	}
	return t.String()
}

// renderMemory returns the memory of the processes.
func (c comparisonResult) renderMemory() string {
	t := table{head: []string{"tenants of each", "API server, resident", "Gatekeeper, resident", "API server's live heap: by " + native, "by " + c.Name}, left: 1}
	var byNative, byOther float64
	for _, s := range c.Sizes {
		byNative += s.Memory.AfterNative - s.Memory.Before
		byOther += s.Memory.AfterGatekeeper - s.Memory.AfterNative
		t.addRow(fmt.Sprint(s.Tenants), machine.FormatBytes(s.Memory.APIServer), machine.FormatBytes(s.Memory.Gatekeeper), formatMegabytes(byNative), formatMegabytes(byOther))
	}
	return t.String()
}

// renderKills returns the outcomes of pods while the engine was killed.
func (r report) renderKills() string {
	t := table{head: []string{"", "tenants", "kills", "ready again after", "first pod after", "pods", "got in", "refused", "no answer", "**got in unplaced**"}, left: 1}
	for _, c := range r.Comparisons {
		for _, k := range c.Kills {
			unplaced := fmt.Sprintf("**%d**", k.Unplaced)
			if k.Line == noPolicy {
				unplaced = "" // no pod should be placed there
			}
			t.addRow(k.Description, fmt.Sprint(k.Tenants), fmt.Sprint(k.Kills), fmt.Sprintf("%.1f s", samples.Median(k.ReadySeconds)), fmt.Sprintf("%.1f s", samples.Median(k.PlacingSeconds)), fmt.Sprint(k.Asked),
				fmt.Sprint(k.Stored), fmt.Sprint(k.Refused), fmt.Sprint(k.Unanswered), unplaced)
		}
	}
	if len(t.rows) == 0 {
		return ""
	}
	return fmt.Sprintf("%d pods a second, stored.\n\n%s", r.Rate, t)
}

func formatMilliseconds(v float64) string { return fmt.Sprintf("%.2f ms", v) }

// formatMegabytes formats a difference. It is negative if more garbage was freed than objects were
// added.
func formatMegabytes(v float64) string { return fmt.Sprintf("%+.1f MiB", v/(1<<20)) }

// table is a Markdown table that is also readable as plain text.
type table struct {
	head []string
	rows [][]string
	// left is the number of text columns.
	left int
}

func (t *table) addRow(cells ...string) { t.rows = append(t.rows, cells) }

func (t table) String() string {
	widths := make([]int, len(t.head))
	for _, row := range append([][]string{t.head}, t.rows...) {
		for i, cell := range row {
			widths[i] = max(widths[i], len([]rune(cell)))
		}
	}
	var b strings.Builder
	write := func(row []string) {
		for i, cell := range row {
			pad := strings.Repeat(" ", widths[i]-len([]rune(cell)))
			if i < t.left {
				cell += pad
			} else {
				cell = pad + cell
			}
			fmt.Fprintf(&b, "| %s ", cell)
		}
		b.WriteString("|\n")
	}
	write(t.head)
	for i, width := range widths {
		line := strings.Repeat("-", width+1)
		if i < t.left {
			fmt.Fprintf(&b, "|%s-", line)
		} else {
			fmt.Fprintf(&b, "|%s:", line)
		}
	}
	b.WriteString("|\n")
	for _, row := range t.rows {
		write(row)
	}
	return b.String()
}
