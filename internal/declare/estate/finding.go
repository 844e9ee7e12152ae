package estate

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"croft.dev/croft/internal/declare/document"
	"croft.dev/croft/internal/declare/manifest"
)

// finding is the result of a rule for a field of its object.
type finding struct {
	at      *field.Path
	message string
	// severity is empty for findings that refuse the object.
	severity document.Severity
}

func makeFinding(at *field.Path, format string, args ...any) []finding {
	return []finding{{at: at, message: fmt.Sprintf(format, args...)}}
}

// makeWarning returns a warning, which does not refuse the object.
func makeWarning(at *field.Path, format string, args ...any) []finding {
	return []finding{{at, fmt.Sprintf(format, args...), document.SeverityWarning}}
}

// makeNote returns a note about a value that is correct.
func makeNote(at *field.Path, format string, args ...any) []finding {
	return []finding{{at, fmt.Sprintf(format, args...), document.SeverityNote}}
}

func (w *checker) recordFindings(o manifest.Object, findings []finding) {
	for _, f := range findings {
		if f.severity != "" {
			w.warnings = append(w.warnings, w.makeProblem(o, f))
			continue
		}
		w.refuse(o, f.at, "%s", f.message)
	}
}

// refuse records a problem of an object. A nil path means the whole object.
func (w *checker) refuse(o manifest.Object, at *field.Path, format string, args ...any) {
	w.invalid[o] = true
	w.problems = append(w.problems, w.makeProblem(o, finding{at: at, message: fmt.Sprintf(format, args...)}))
}

func (w *checker) makeProblem(o manifest.Object, f finding) document.Problem {
	at := ""
	if f.at != nil {
		at = f.at.String()
	}
	p := w.NewProblem(o, at, f.message)
	p.Severity = f.severity
	return p
}
