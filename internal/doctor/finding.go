package doctor

import (
	"croft.dev/croft/internal/catalog"
	"croft.dev/croft/internal/why"
)

// of returns a finding for a row of the catalogue.
func of(id string, severity Severity, object, message string) Finding {
	row := catalog.Lookup(id)
	return Finding{Severity: severity, Object: object, Message: message, Cause: row.Cause, Cure: row.Cure, Run: row.Run, Link: row.Link}
}

// wrong returns a problem from a text. otherwise is the cure if the text matches no row of
// the catalogue.
func wrong(object, text, otherwise string) Finding {
	step := why.Step{Object: object, Seen: text}
	if found := catalog.Match(text); len(found) > 0 {
		step.Finding = &found[0]
	}
	return byStep(step, otherwise)
}

// byStep converts a step of `croft why` to a problem.
func byStep(step why.Step, otherwise string) Finding {
	f := Finding{Severity: Problem, Object: step.Object, Message: step.Seen, Cure: otherwise}
	if known := step.Finding; known != nil {
		f.Cause, f.Cure, f.Run, f.Link = known.Cause, known.Cure, known.Run, known.Link
	}
	return f
}
