// Command causesdoc writes the generated part of docs/reference/troubleshooting.md: the checks of `croft
// doctor`, the runbooks of alerts, and the catalogue of causes. It reads the document from the
// first argument and writes it to the second. `make generate` calls it.
package main

import (
	"fmt"
	"strings"

	"croft.dev/croft/hack/internal/document"
	"croft.dev/croft/internal/diagnose/catalog"
	"croft.dev/croft/internal/diagnose/doctor"
	"croft.dev/croft/internal/diagnose/oncall"
)

func main() { document.Main(generate) }

func generate() (string, error) {
	var b strings.Builder
	writeChecks(&b)
	writeAlerts(&b)
	fmt.Fprintf(&b, "\n# The catalogue of causes\n\n%d causes, with their symptoms and fixes. `croft why` and `croft doctor` print them.\n", len(catalog.Rows()))
	for _, chapter := range catalog.Chapters() {
		fmt.Fprintf(&b, "\n## %s\n", chapter.Title)
		for _, row := range chapter.Rows {
			writeSection(&b, row)
		}
	}
	return b.String(), nil
}

// writeChecks writes the checks of `croft doctor`.
func writeChecks(b *strings.Builder) {
	b.WriteString("\n# The checks of croft doctor\n\n| check | without findings |\n|---|---|\n")
	for _, c := range doctor.Checks() {
		text := c.Summary
		if c.Detail != "" {
			text += ". " + c.Detail
		}
		fmt.Fprintf(b, "| `%s` | %s |\n", c.Name, text)
	}
}

// writeAlerts writes the runbooks, to which the alerts link by name.
func writeAlerts(b *strings.Builder) {
	b.WriteString("\n# Alerts\n\nThe rules are in [monitoring](../../monitoring); [observability.md](../how-to/observability.md) explains their use.\n")
	for _, group := range oncall.Groups() {
		fmt.Fprintf(b, "\n## Alerts: %s\n", group.Title)
		for _, a := range group.Alerts {
			fmt.Fprintf(b, "\n### %s\n\n- **Severity**: %s.\n- **Meaning**: %s.\n", a.Name, a.Severity, a.Meaning)
			fmt.Fprintf(b, "- **Fix**: %s.\n- **Diagnosis**: `%s`\n\n```\n%s\n```\n", a.Fix, a.Run, a.Expr)
		}
	}
}

func writeSection(b *strings.Builder, row catalog.Row) {
	fmt.Fprintf(b, "\n### %s\n\nSymptom: %s.\n", row.ID, row.Symptom)
	if len(row.Texts) > 0 {
		fmt.Fprintf(b, "\n```\n%s\n```\n", strings.Join(row.Texts, "\n"))
	}
	who := "the team"
	if row.Who == catalog.Platform {
		who = "a platform admin"
	}
	fix := row.Fix
	if row.Run != "" {
		fix += ": `" + row.Run + "`"
	}
	fmt.Fprintf(b, "\n- **Cause**: %s.\n- **Fix** (%s): %s. [More](%s).\n",
		row.Cause, who, fix, formatLink(row.Link))
}

// formatLink returns a link relative to docs/reference, the directory of the document.
func formatLink(to string) string {
	if page, found := strings.CutPrefix(to, "docs/reference/"); found {
		return page
	}
	if page, found := strings.CutPrefix(to, "docs/"); found {
		return "../" + page
	}
	return to
}
