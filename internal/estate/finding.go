package estate

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"croft.dev/croft/internal/manifest"
)

// finding is the result of a rule for a field of its object.
type finding struct {
	at      *field.Path
	message string
	// severity is empty for findings that refuse the object.
	severity manifest.Severity
}

func found(at *field.Path, format string, args ...any) []finding {
	return []finding{{at: at, message: fmt.Sprintf(format, args...)}}
}

// warned returns a warning, which does not refuse the object.
func warned(at *field.Path, format string, args ...any) []finding {
	return []finding{{at, fmt.Sprintf(format, args...), manifest.SeverityWarning}}
}

// noted returns a note about a value that is correct.
func noted(at *field.Path, format string, args ...any) []finding {
	return []finding{{at, fmt.Sprintf(format, args...), manifest.SeverityNote}}
}

func (w *whole) refuseFor(o manifest.Object, findings []finding) {
	for _, f := range findings {
		if f.severity != "" {
			w.warnings = append(w.warnings, w.problem(o, f))
			continue
		}
		w.refuse(o, f.at, "%s", f.message)
	}
}

// refuse records a problem of an object. A nil path means the whole object.
func (w *whole) refuse(o manifest.Object, at *field.Path, format string, args ...any) {
	w.bad[o] = true
	w.problems = append(w.problems, w.problem(o, finding{at: at, message: fmt.Sprintf(format, args...)}))
}

func (w *whole) problem(o manifest.Object, f finding) manifest.Problem {
	at := ""
	if f.at != nil {
		at = f.at.String()
	}
	p := w.Problem(o, at, f.message)
	p.Severity = f.severity
	return p
}
