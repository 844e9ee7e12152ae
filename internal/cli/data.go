package cli

import (
	"context"
	"errors"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/internal/adoption/consequence"
	"croft.dev/croft/internal/declare/document"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/declare/manifest"
	"croft.dev/croft/internal/operate/apply"
)

// These types are the output of check, diff and apply with -o json and -o yaml. Their
// --help shows the shapes. Programs read them, so fields are added and never changed.

// checkReport is the output of check.
type checkReport struct {
	Good     bool          `json:"good"`
	Tenants  int           `json:"tenants"`
	Pools    int           `json:"pools"`
	Problems []problemData `json:"problems"`
}

// The severities of problems. An error makes a file bad input.
const (
	severityError   = "Error"
	severityWarning = "Warning"
	severityNote    = "Note"
)

// problemData is a document.Problem as data.
type problemData struct {
	Severity string `json:"severity"`
	File     string `json:"file,omitempty"`
	Line     int    `json:"line"`
	Path     string `json:"path,omitempty"`
	Object   string `json:"object,omitempty"`
	Field    string `json:"field,omitempty"`
	Message  string `json:"message"`
}

func toProblemData(problems document.Problems, severity string) []problemData {
	all := []problemData{}
	for _, p := range problems {
		object := p.Kind
		if p.Name != "" {
			object += "/" + p.Name
		}
		severity := severity
		if p.Severity == document.SeverityNote {
			severity = severityNote
		}
		all = append(all, problemData{severity, p.File, p.Line, p.Path, object, p.Field, p.Message})
	}
	return all
}

// printCheck prints the problems of files. It returns other errors unchanged.
func (a *app) printCheck(e *estate.Estate, warnings document.Problems, err error, output format) error {
	var problems document.Problems
	var strict *reportedBadInput
	if err != nil && !errors.As(err, &strict) && !errors.As(err, &problems) {
		return err
	}
	report := checkReport{Good: err == nil, Problems: append(toProblemData(problems, severityError), toProblemData(warnings, severityWarning)...)}
	if e != nil {
		report.Tenants, report.Pools = len(e.Tenants), len(e.Pools)
	}
	if printErr := output.print(a.out, report); printErr != nil || err == nil {
		return printErr
	}
	return &reportedBadInput{err}
}

// diffReport is the output of diff.
type diffReport struct {
	Changes      []differenceData          `json:"changes"`
	Consequences []consequence.Consequence `json:"consequences"`
	Conflicts    []conflictData            `json:"conflicts"`
}

// conflictData is an apply.Conflict as data.
type conflictData struct {
	Object  string   `json:"object"`
	Manager string   `json:"manager"`
	Fields  []string `json:"fields"`
}

// differenceData is the change of one object.
type differenceData struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	Action    string `json:"action"`
	Diff      string `json:"diff"`
}

// diffActions maps planned actions to the words of diff.
var diffActions = map[apply.Action]string{apply.Created: "create", apply.Configured: "update", apply.Deleted: "delete"}

func newDiffReport(p *diffPlan) diffReport {
	report := diffReport{Changes: []differenceData{}, Consequences: append([]consequence.Consequence{}, p.consequences...), Conflicts: []conflictData{}}
	for _, c := range p.conflicts {
		report.Conflicts = append(report.Conflicts, conflictData{c.Kind + "/" + c.Name, c.Manager, append([]string{}, c.Fields...)})
	}
	for _, d := range p.differences {
		report.Changes = append(report.Changes, differenceData{d.Kind, d.Namespace, d.Name, diffActions[d.Action], d.Text})
	}
	return report
}

// applyReport is the output of apply.
type applyReport struct {
	Changes []changeData `json:"changes"`
	Ready   int          `json:"ready"`
	Objects []objectData `json:"objects"`
}

// changeData is an apply.Change as data.
type changeData struct {
	Kind      string       `json:"kind"`
	Namespace string       `json:"namespace,omitempty"`
	Name      string       `json:"name"`
	Action    apply.Action `json:"action"`
	Error     string       `json:"error,omitempty"`
}

// objectData is the progress of a declared object.
type objectData struct {
	Kind    string `json:"kind"`
	Name    string `json:"name"`
	Ready   bool   `json:"ready"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// readTimeout is the time limit for reading the last state, also after an interruption.
const readTimeout = 5 * time.Second

// printApplyReport prints the written objects and their state as data. It prints nothing in the
// text format, whose output was printed before.
func (a *app) printApplyReport(ctx context.Context, c client.Reader, output format, changes []apply.Change, objects []client.Object) error {
	if output == formatText {
		return nil
	}
	report := applyReport{Changes: []changeData{}, Objects: []objectData{}}
	for _, change := range changes {
		data := changeData{Kind: change.Kind, Namespace: change.Namespace, Name: change.Name, Action: change.Action}
		if change.Err != nil {
			data.Error = change.Err.Error()
		}
		report.Changes = append(report.Changes, data)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readTimeout)
	defer cancel()
	live, err := readDeclaration(ctx, c)
	if err != nil {
		live = &manifest.Declaration{} // the changes are reported nevertheless
	}
	for _, o := range objects {
		data := objectData{Kind: o.GetObjectKind().GroupVersionKind().Kind, Name: o.GetName(), Reason: "NotSeenYet"}
		if ready := findCondition(live, o); ready != nil {
			data.Ready, data.Reason, data.Message = ready.Status == metav1.ConditionTrue, ready.Reason, ready.Message
		}
		if data.Ready {
			report.Ready++
		}
		report.Objects = append(report.Objects, data)
	}
	return output.print(a.out, report)
}

// findCondition returns the condition Ready of a declared object, or nil if there is none
// yet.
func findCondition(live *manifest.Declaration, o client.Object) *metav1.Condition {
	name := o.GetName()
	switch o.GetObjectKind().GroupVersionKind().Kind {
	case "Platform":
		for _, p := range live.Platforms {
			if p.Name == name {
				return findReady(p.Generation, p.Status.Status)
			}
		}
	case "Pool":
		for _, p := range live.Pools {
			if p.Name == name {
				return findReady(p.Generation, p.Status.Status)
			}
		}
	case "Tenant":
		for _, t := range live.Tenants {
			if t.Name == name {
				return findReady(t.Generation, t.Status.Status)
			}
		}
	case "SecondaryNetwork":
		for _, n := range live.Networks {
			if n.Name == name {
				return findReady(n.Generation, n.Status)
			}
		}
	}
	return nil
}
