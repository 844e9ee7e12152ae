package cli

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"croft.dev/croft/internal/declare/wording"
	"croft.dev/croft/internal/prove/trial"
)

func (a *app) printTrial(report *trial.Report, o tryOptions, took time.Duration) error {
	switch o.output {
	case formatTable:
		a.printVerdicts(report, took)
		return nil
	case formatJUnit:
		return printJUnit(a.out, "croft try", buildTrialSuites(report), took)
	case formatSARIF:
		return printSARIF(a.out, report)
	default:
		return o.output.print(a.out, report)
	}
}

// printVerdicts prints a line for each object, and below the table the full refusals,
// warnings and changes.
func (a *app) printVerdicts(report *trial.Report, took time.Duration) {
	results := report.Results
	rows := make([][]string, len(results))
	counts := map[trial.Verdict]int{}
	for i, r := range results {
		counts[r.Verdict]++
		rows[i] = []string{fmt.Sprintf("%s:%d", r.File, r.Line), formatObject(r), string(r.Verdict), dashIfEmpty(describeReasons(r))}
	}
	printTable(a.out, []string{"MANIFEST", "OBJECT", "RESULT", "REASON"}, rows)
	for i, r := range results {
		var lines []string
		for _, reason := range slices.Concat(r.Refusals, r.Warnings) {
			line := reason.Message
			if reason.Line != r.Line {
				line = fmt.Sprintf("line %d: %s", reason.Line, line)
			}
			lines = append(lines, line)
		}
		for _, c := range r.Changes {
			lines = append(lines, fmt.Sprintf("%s: %s → %s", c.Path, dashIfEmpty(c.Before), dashIfEmpty(c.After)))
		}
		if len(lines) > 0 {
			printSafely(a.out, "\n%s  %s\n  %s\n", escapeLine(rows[i][0]), escapeLine(rows[i][1]), escapeControls(strings.Join(lines, "\n  ")))
		}
	}
	printSafely(a.out, "\nUnknown:\n")
	for _, unknown := range report.Unknown {
		printSafely(a.out, "%s\n", foldText(unknown, "  - ", "    "))
	}
	summary := fmt.Sprintf("%d of %s refused", counts[trial.Refused], wording.FormatCount(len(results), "object"))
	for _, v := range []trial.Verdict{trial.Warned, trial.Changed, trial.Admitted} {
		if counts[v] > 0 {
			summary += fmt.Sprintf(", %d %s", counts[v], v)
		}
	}
	printSafely(a.out, "\n%s; tried in %.1f s\n", summary, took.Seconds())
}

// describeReasons names the rules that refuse an object, or the number of changes.
func describeReasons(r trial.Result) string {
	var names []string
	for _, refusal := range r.Refusals {
		name := refusal.Source
		if refusal.Rule != "" {
			name += ", rule " + refusal.Rule
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	switch {
	case len(names) > 0:
		return strings.Join(names, "; ")
	case len(r.Warnings) > 0:
		return wording.FormatCount(len(r.Warnings), "warning")
	case len(r.Changes) > 0:
		return wording.FormatCount(len(r.Changes), "field")
	default:
		return ""
	}
}

// formatObject returns an object's name for people.
func formatObject(r trial.Result) string {
	if r.CreatedFrom == "" {
		return r.Object
	}
	return r.Object + " of " + r.CreatedFrom
}

// buildTrialSuites returns a suite for each file and a case for each object. Objects of unknown
// kinds count as not tried.
func buildTrialSuites(report *trial.Report) []junitSuite {
	var suites []junitSuite
	for _, r := range report.Results {
		if len(suites) == 0 || suites[len(suites)-1].Name != escapeLine(r.File) {
			suites = append(suites, junitSuite{Name: escapeLine(r.File)})
		}
		suite := &suites[len(suites)-1]
		c := junitCase{Name: escapeLine(formatObject(r)), Class: "croft.try." + string(r.Verdict), File: escapeLine(r.File), Line: r.Line}
		if r.Verdict == trial.Refused {
			c.Failure = &junitFailure{
				Type: escapeLine(describeReasons(r)), Message: escapeControls(r.Refusals[0].Message),
				Text: formatMessages(r.File, r.Refusals),
			}
		}
		c.Output = formatMessages(r.File, r.Warnings)
		for _, change := range r.Changes {
			c.Output += escapeControls(fmt.Sprintf("%s: %s → %s\n", change.Path, dashIfEmpty(change.Before), dashIfEmpty(change.After)))
		}
		suite.Cases = append(suite.Cases, c)
	}
	unknown := junitSuite{Name: "not known"}
	for _, u := range report.Unknown {
		unknown.Cases = append(unknown.Cases, junitCase{Name: escapeLine(u), Class: "croft.try.unknown", Skipped: &junitSkipped{Message: escapeControls(u)}})
	}
	return append(suites, unknown)
}

func formatMessages(file string, reasons []trial.Reason) string {
	var text strings.Builder
	for _, r := range reasons {
		fmt.Fprintf(&text, "%s:%d: %s\n", file, r.Line, r.Message)
	}
	return escapeControls(text.String())
}
