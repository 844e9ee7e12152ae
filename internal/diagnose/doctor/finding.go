package doctor

import (
	"croft.dev/croft/internal/diagnose/catalog"
	"croft.dev/croft/internal/diagnose/why"
)

// newFinding returns a finding for a row of the catalogue.
func newFinding(id string, severity Severity, object, message string) Finding {
	row := catalog.FindRow(id)
	return Finding{Severity: severity, Object: object, Message: message, Cause: row.Cause, Fix: row.Fix, Run: row.Run, Link: row.Link}
}

// newProblem returns a problem from a text. otherwise is the fix if the text matches no row of
// the catalogue.
func newProblem(object, text, otherwise string) Finding {
	step := why.Step{Object: object, Observation: text}
	if found := catalog.FindMatches(text); len(found) > 0 {
		step.Finding = &found[0]
	}
	return toProblem(step, otherwise)
}

// toProblem converts a step of `croft why` to a problem.
func toProblem(step why.Step, otherwise string) Finding {
	f := Finding{Severity: Problem, Object: step.Object, Message: step.Observation, Fix: otherwise}
	if finding := step.Finding; finding != nil {
		f.Cause, f.Fix, f.Run, f.Link = finding.Cause, finding.Fix, finding.Run, finding.Link
	}
	return f
}
