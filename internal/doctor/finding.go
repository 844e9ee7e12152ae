package doctor

import (
	"croft.dev/croft/internal/catalog"
	"croft.dev/croft/internal/why"
)

// of is a finding by a row of the catalogue.
func of(id string, severity Severity, object, message string) Finding {
	row := catalog.Lookup(id)
	return Finding{Severity: severity, Object: object, Message: message, Cause: row.Cause, Cure: row.Cure, Run: row.Run, Link: row.Link}
}

// wrong is a problem that a text shows; otherwise is its cure if the catalogue knows
// none.
func wrong(object, text, otherwise string) Finding {
	step := why.Step{Object: object, Seen: text}
	if found := catalog.Match(text); len(found) > 0 {
		step.Finding = &found[0]
	}
	return byStep(step, otherwise)
}

// byStep is a problem as `croft why` judges it.
func byStep(step why.Step, otherwise string) Finding {
	f := Finding{Severity: Problem, Object: step.Object, Message: step.Seen, Cure: otherwise}
	if known := step.Finding; known != nil {
		f.Cause, f.Cure, f.Run, f.Link = known.Cause, known.Cure, known.Run, known.Link
	}
	return f
}
