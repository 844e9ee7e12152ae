package cli

import (
	"fmt"
	"strings"
	"time"

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
	for i, r := range results {
		rows[i] = []string{fmt.Sprintf("%s:%d", r.File, r.Line), r.Name(), string(r.Verdict), dashIfEmpty(r.DescribeReasons())}
	}
	printTable(a.out, []string{"MANIFEST", "OBJECT", "RESULT", "REASON"}, rows)
	for i, r := range results {
		if lines := r.ListDetails(); len(lines) > 0 {
			printSafely(a.out, "\n%s  %s\n  %s\n", escapeLine(rows[i][0]), escapeLine(rows[i][1]), escapeControls(strings.Join(lines, "\n  ")))
		}
	}
	printSafely(a.out, "\nUnknown:\n")
	for _, unknown := range report.Unknown {
		printSafely(a.out, "%s\n", foldText(unknown, "  - ", "    "))
	}
	printSafely(a.out, "\n%s; tried in %.1f s\n", report.Summarize(), took.Seconds())
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
		c := junitCase{Name: escapeLine(r.Name()), Class: "croft.try." + string(r.Verdict), File: escapeLine(r.File), Line: r.Line}
		if r.Verdict == trial.Refused {
			c.Failure = &junitFailure{
				Type: escapeLine(r.DescribeReasons()), Message: escapeControls(r.Refusals[0].Message),
				Text: formatMessages(r.File, r.Refusals),
			}
		}
		c.Output = formatMessages(r.File, r.Warnings)
		for _, change := range r.Changes {
			c.Output += escapeControls(change.String() + "\n")
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
