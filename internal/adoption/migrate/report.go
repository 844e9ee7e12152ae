package migrate

import (
	"fmt"
	"strings"

	"croft.dev/croft/internal/adoption/migrate/source"
	"croft.dev/croft/internal/declare/wording"
)

// titles are the sections of the report, the most urgent first.
var titles = []struct {
	outcome source.Outcome
	title   string
	none    string
}{
	{source.NotKept, "Not kept", "All values of the input are kept or changed."},
	{source.Changed, "Changed", "No value has a new meaning."},
	{source.Kept, "Kept", "Nothing."},
	{source.Other, "Outside of croft's scope", "Nothing."},
}

// Summary returns one line about the whole result.
func (r *Result) Summary() string {
	return fmt.Sprintf("%s, %s; values of the input kept: %d, changed: %d, not kept: %d, outside of croft's scope: %d",
		wording.FormatCount(len(r.File.Pools), "pool"), wording.FormatCount(len(r.File.Tenants), "tenant"), r.Count(source.Kept), r.Count(source.Changed), r.Count(source.NotKept), r.Count(source.Other))
}

// Markdown returns the report as Markdown, to commit or to read.
func (r *Result) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Migration report\n\n%s.\n", r.Summary())
	if len(r.Problems) > 0 {
		b.WriteString("\n## To fix\n\n")
		for _, p := range r.Problems {
			fmt.Fprintf(&b, "- %s\n", escapeText(p.Error()))
		}
	}
	if len(r.Notes) > 0 {
		b.WriteString("\n## Notes\n\n")
		for _, n := range r.Notes {
			fmt.Fprintf(&b, "- %s\n", escapeText(n))
		}
	}
	for _, section := range titles {
		fmt.Fprintf(&b, "\n## %s\n\n", section.title)
		rows := r.listRows(section.outcome)
		if len(rows) == 0 {
			b.WriteString(section.none + "\n")
			continue
		}
		b.WriteString("| input | field | value | croft.yaml | remark |\n|---|---|---|---|---|\n")
		for _, row := range rows {
			fmt.Fprintf(&b, "| %s |\n", strings.Join(row, " | "))
		}
	}
	return b.String()
}

// listRows returns the findings of one outcome.
func (r *Result) listRows(outcome source.Outcome) [][]string {
	var rows [][]string
	alike := map[string]int{}
	for _, f := range r.Findings {
		if f.Outcome == source.Other && f.Field == "" {
			alike[getRowKey(f)]++
		}
	}
	for _, f := range r.Findings {
		if f.Outcome != outcome {
			continue
		}
		if n := alike[getRowKey(f)]; f.Outcome == source.Other && f.Field == "" && n > few {
			alike[getRowKey(f)] = 0
			rows = append(rows, []string{f.File, fmt.Sprintf("%d objects of kind %s", n, getKind(f)), "", "", escapeText(f.Message)})
			continue
		} else if f.Outcome == source.Other && f.Field == "" && n == 0 {
			continue // it shares a row with the other objects of this likeness
		}
		rows = append(rows, []string{formatPlace(f), formatCode(f.Object + " " + f.Field), formatCode(f.Value), formatCode(strings.Join(f.To, ", ")), escapeText(f.Message)})
	}
	return rows
}

// few is the maximum number of objects with the same finding that have a row each.
const few = 5

// getRowKey returns the key of objects that share a row.
func getRowKey(f source.Finding) string { return f.File + " " + getKind(f) + " " + f.Message }

func getKind(f source.Finding) string {
	kind, _, _ := strings.Cut(f.Object, "/")
	return kind
}

func formatPlace(f source.Finding) string {
	if f.Line == 0 {
		return f.File
	}
	return fmt.Sprintf("%s:%d", f.File, f.Line)
}

func formatCode(text string) string {
	text = strings.TrimSpace(text)
	if text == "" {
		return ""
	}
	return "`" + strings.ReplaceAll(escapePipe(text), "`", "'") + "`"
}

func escapeText(text string) string {
	return strings.NewReplacer("|", `\|`, "\n", " ", "<", "&lt;", "*", `\*`).Replace(text)
}

func escapePipe(text string) string {
	return strings.NewReplacer("|", `\|`, "\n", " ").Replace(text)
}

// Text returns the report for a terminal: the findings that require action in full, and the
// number of the others.
func (r *Result) Text() string {
	var b strings.Builder
	for _, section := range titles {
		if section.outcome == source.Kept || section.outcome == source.Other {
			continue
		}
		var rows []string
		for _, f := range r.Findings {
			if f.Outcome == section.outcome {
				rows = append(rows, "  "+formatFinding(f))
			}
		}
		if len(rows) > 0 {
			fmt.Fprintf(&b, "%s:\n%s\n", strings.ToLower(section.title), strings.Join(rows, "\n"))
		}
	}
	if len(r.Notes) > 0 {
		b.WriteString("notes:\n")
		for _, n := range r.Notes {
			fmt.Fprintf(&b, "  %s\n", n)
		}
	}
	b.WriteString(r.Summary() + "\n")
	return b.String()
}

// formatFinding returns one finding in full.
func formatFinding(f source.Finding) string {
	text := strings.TrimSpace(f.Object + " " + f.Field)
	if f.Value != "" && len(f.Value) < 40 {
		text += " = " + f.Value
	}
	if len(f.To) > 0 {
		text += " -> " + strings.Join(f.To, ", ")
	}
	return strings.ReplaceAll(fmt.Sprintf("%s: %s: %s", formatPlace(f), text, f.Message), "\n", " ")
}

// Report returns the report for programs.
func (r *Result) Report() map[string]any {
	problems := make([]string, len(r.Problems))
	for i, p := range r.Problems {
		problems[i] = p.Error()
	}
	findings, notes := r.Findings, r.Notes
	if findings == nil {
		findings = []source.Finding{}
	}
	if notes == nil {
		notes = []string{}
	}
	return map[string]any{"summary": map[string]int{
		"pools": len(r.File.Pools), "tenants": len(r.File.Tenants),
		string(source.Kept): r.Count(source.Kept), string(source.Changed): r.Count(source.Changed), string(source.NotKept): r.Count(source.NotKept), string(source.Other): r.Count(source.Other),
	}, "problems": problems, "notes": notes, "findings": findings}
}
