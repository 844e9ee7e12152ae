package page

import (
	"fmt"
	"strings"

	"croft.dev/croft/internal/diagnose/why"
	"croft.dev/croft/internal/prove/trial"
)

// Try is a form for manifests, and the result of the last ones.
type Try struct {
	// Action is the path of the form.
	Action string
	// Text contains the manifests.
	Text string
	// Problem explains why nothing was tried.
	Problem Text
	// Summary and Results are the result; empty before the first trial.
	Summary string
	Results Sections
}

func (Try) templateName() string { return "try" }

// LongestTrial is the maximum size of manifests in bytes, and MostTried their maximum number: each
// object costs some requests.
const (
	LongestTrial = 128 << 10
	MostTried    = 50
)

// NewTry returns the page that tries manifests. report is nil if nothing was tried.
func NewTry(namespace, text string, problem Text, report *trial.Report) Page {
	if len(text) > LongestTrial {
		text = cutText(text, LongestTrial)
	}
	body := Try{Action: Link("namespaces", namespace, "try"), Problem: problem, Text: strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text)}
	if report != nil {
		body.Summary = report.Summarize()
		body.Results = listResults(report)
	}
	return Page{
		Title: T("Try manifests in %s", namespace), Heading: T("Try manifests in %s", namespace), Namespace: namespace, Tab: TabTry,
		Commands: []string{"croft try --live -n " + namespace + " MANIFEST..."},
		Body:     body,
	}
}

func listResults(report *trial.Report) Sections {
	verdicts := map[trial.Verdict]why.Verdict{trial.Refused: why.Bad, trial.Warned: why.Waiting}
	table := Section{Heading: T("Results"), Head: listHeads("Line", "Object", "Result", "Reason", "Details"), Empty: T("There are no objects: paste at least one.")}
	for _, r := range report.Results {
		verdict, ok := verdicts[r.Verdict]
		if !ok {
			verdict = why.Good
		}
		table.Rows = append(table.Rows, []Cell{
			{Text: fmt.Sprint(r.Line)}, {Text: r.Name()}, {Text: string(r.Verdict), Verdict: verdict}, {Text: r.DescribeReasons()}, {Text: strings.Join(r.ListDetails(), "\n")},
		})
	}
	return Sections{table, {Heading: T("Unknown"), List: listRaw(report.Unknown)}}
}
