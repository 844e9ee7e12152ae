// Command metricsdoc writes the generated part of docs/reference/metrics.md: croft's metrics, other
// components' metrics that alerts use, and the alerts. It reads the document from the first
// argument and writes it to the second. `make generate` calls it.
package main

import (
	"fmt"
	"strings"

	"croft.dev/croft/hack/internal/document"
	"croft.dev/croft/internal/diagnose/oncall"
	"croft.dev/croft/internal/operate/metric"
)

func main() { document.Main(generate) }

func generate() (string, error) {
	var b strings.Builder
	for _, process := range []struct {
		metric.Process
		title string
	}{{metric.Operator, "The operator"}, {metric.Proxy, "croft proxy"}, {metric.Ledger, "croft ledger"}, {metric.Copier, "croft copy-secrets"}} {
		fmt.Fprintf(&b, "\n## %s\n\n", process.title)
		writeTable(&b, metric.Own(), process.Process)
	}
	b.WriteString("\n## Metrics of others that alerts and dashboards use\n")
	for _, process := range []metric.Process{metric.Operator, metric.APIServer} {
		fmt.Fprintf(&b, "\nOf `%s`:\n\n", process)
		writeTable(&b, metric.Others(), process)
	}
	b.WriteString("\n## Alerts\n\n| alert | severity | after | summary |\n|---|---|---|---|\n")
	for _, a := range oncall.Alerts() {
		after := "at once"
		if a.For > 0 {
			after = a.After()
		}
		fmt.Fprintf(&b, "| [%s](troubleshooting.md#%s) | %s | %s | %s |\n", a.Name, a.Anchor(), a.Severity, after, escapeCell(formatSummary(a.Summary)))
	}
	return b.String(), nil
}

func writeTable(b *strings.Builder, metrics []metric.Metric, process metric.Process) {
	b.WriteString("| metric | type | labels | description |\n|---|---|---|---|\n")
	for _, m := range metrics {
		if m.Process != process {
			continue
		}
		var labels []string
		for _, l := range m.Labels {
			label := "`" + l.Name + "`"
			if l.Description != "" {
				label += " (" + l.Description + ")"
			}
			labels = append(labels, label)
		}
		fmt.Fprintf(b, "| `%s` | %s | %s | %s |\n", m.Name, m.Type, escapeCell(strings.Join(labels, ", ")), escapeCell(m.Help))
	}
}

func escapeCell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }

// formatSummary replaces the template expressions of a summary by readable label names.
func formatSummary(summary string) string {
	return strings.NewReplacer("{{ $labels.", "`", "{{ humanizeDuration $", "`", "{{ humanizePercentage $", "`", "{{ humanizeTimestamp $", "`", "{{ $", "`", " }}", "`").Replace(summary)
}
