package estate

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// finding is what a rule has against a field of the object it looks at.
type finding struct {
	at      *field.Path
	message string
	// severity is empty for what refuses the object.
	severity Severity
}

func found(at *field.Path, format string, args ...any) []finding {
	return []finding{{at: at, message: fmt.Sprintf(format, args...)}}
}

// warned is found for what refuses nothing.
func warned(at *field.Path, format string, args ...any) []finding {
	return []finding{{at, fmt.Sprintf(format, args...), SeverityWarning}}
}

func (w *whole) refuseFor(o object, findings []finding) {
	for _, f := range findings {
		if f.severity == SeverityWarning {
			w.warnings = append(w.warnings, w.problem(o, f))
			continue
		}
		w.refuse(o, f.at, "%s", f.message)
	}
}

// refuse records a problem of an object. A nil path stands for the whole object.
func (w *whole) refuse(o object, at *field.Path, format string, args ...any) {
	w.bad[o.position] = true
	w.problems = append(w.problems, w.problem(o, finding{at: at, message: fmt.Sprintf(format, args...)}))
}

func (w *whole) problem(o object, f finding) Problem {
	p := Problem{Severity: f.severity, Kind: o.kind, Name: o.name, Message: f.message}
	if f.at != nil {
		p.Field = f.at.String()
	}
	from := w.origin(o)
	if from != nil {
		from.place(&p)
	}
	p.Live = from == nil && len(w.origins) > 0
	return p
}

// where tells the place of another object, for messages. An object from the API
// server has none; beside a file it is said to be in the cluster.
func (w *whole) where(o object) string {
	if from := w.origin(o); from != nil {
		return from.where()
	}
	if len(w.origins) > 0 {
		return " (in the cluster)"
	}
	return ""
}
