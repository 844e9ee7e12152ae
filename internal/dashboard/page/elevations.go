package page

import (
	"cmp"
	"slices"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/wording"
	"croft.dev/croft/internal/diagnose/why"
)

// Elevations is the page on which users request, approve and end elevations.
type Elevations struct {
	// Open are the elevations that wait for an approval or are active.
	Open []OpenElevation
	// Request is the path of the form for a new request; empty if the user may not request one.
	Request string
	// Record is the table of all elevations.
	Record Sections
}

// OpenElevation is an elevation with the forms that change it.
type OpenElevation struct {
	Name    string
	State   string
	Verdict why.Verdict
	// Text is the request in one sentence, and Message explains its state.
	Text, Message Text
	Forms         []ElevationForm
}

// ElevationForm is a button that changes an elevation.
type ElevationForm struct {
	Path         string
	Button, Note Text
}

func (Elevations) templateName() string { return "elevations" }

// ElevationRights are a user's rights that decide which forms the page has. The cluster decides again
// when a form is sent.
type ElevationRights struct {
	// User is the user's name at the cluster.
	User string
	// Hidden means that the user may not list elevations.
	Hidden                bool
	Request, Approve, End bool
	// Key is the name of the elevation whose key is in the user's browser.
	Key string
}

// The names of the forms, which are the last segments of their paths.
const (
	ApproveElevation = "approve"
	EndElevation     = "end"
	UseElevation     = "use"
)

// mostElevations is the maximum number of rows.
const mostElevations = 200

// NewElevations returns the page of the elevations that were requested in a namespace.
func NewElevations(namespace, tenant string, all []v1alpha1.Elevation, r ElevationRights) Page {
	path := ElevationsPath(namespace)
	body := Elevations{}
	if r.Request {
		body.Request = path
	}
	all = slices.Clone(all)
	slices.SortFunc(all, func(a, b v1alpha1.Elevation) int {
		return cmp.Or(b.CreationTimestamp.Compare(a.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	record := Section{
		Heading: T("Record"), Head: listHeads("Elevation", "By", "Role", "For", "Approved by", "Phase", "Until", "Reason"),
		Note:  T("Requests of this namespace, the latest first. An elevation applies to all namespaces of tenant %s.", tenant),
		Empty: T("There are no elevations in this namespace: request one above."),
	}
	if r.Hidden {
		record.Note, record.Empty = nil, T("You may not list elevations here: a platform admin enables them with platform.elevation.")
	} else if !r.Request {
		record.Empty = T("There are no elevations in this namespace.")
	}
	for i := range all[:min(len(all), mostElevations)] {
		e := &all[i]
		if isOpen(e) {
			body.Open = append(body.Open, newOpenElevation(path, e, r))
		}
		until := "-"
		if e.Status.Until != nil {
			until = formatTime(e.Status.Until.Time)
		}
		state, verdict := describePhase(e)
		record.Rows = append(record.Rows, []Cell{
			{Text: e.Name}, {Text: e.Spec.RequestedBy}, {Text: string(e.Spec.Role)}, {Text: wording.FormatDuration(e.Spec.Duration.Duration)},
			{Text: cmp.Or(e.Spec.ApprovedBy, "-")}, {Text: state, Verdict: verdict}, {Text: until}, {Text: e.Spec.Reason},
		})
	}
	body.Record = Sections{record}
	return Page{
		Title: T("Elevations in %s", namespace), Heading: T("Elevations in %s", namespace), Namespace: namespace, Tab: TabAccess,
		Commands: []string{
			"croft elevate --tenant " + tenant + " -n " + namespace + " --for 1h --reason TEXT", "croft elevate approve NAME -n " + namespace,
			"kubectl get elevations -n " + namespace,
		},
		Body: body,
	}
}

// ElevationsPath returns the path of the page of a namespace's elevations.
func ElevationsPath(namespace string) string { return Link("namespaces", namespace, "elevations") }

func isOpen(e *v1alpha1.Elevation) bool {
	return e.Status.Phase != v1alpha1.ElevationEnded && e.Status.Phase != v1alpha1.ElevationRefused
}

// describePhase returns the phase. A new request has none until the operator has seen it.
func describePhase(e *v1alpha1.Elevation) (string, why.Verdict) {
	switch e.Status.Phase {
	case v1alpha1.ElevationActive, v1alpha1.ElevationEnded:
		return string(e.Status.Phase), why.Good
	case v1alpha1.ElevationRefused:
		return string(e.Status.Phase), why.Bad
	default:
		return string(v1alpha1.ElevationPending), why.Waiting
	}
}

func newOpenElevation(path string, e *v1alpha1.Elevation, r ElevationRights) OpenElevation {
	o := OpenElevation{Name: e.Name, Text: DescribeElevation(e), Message: Raw(e.Status.Message)}
	o.State, o.Verdict = describePhase(e)
	forms := path + Link(e.Name) + "/"
	own := e.Spec.RequestedBy == r.User
	isActive := e.Status.Phase == v1alpha1.ElevationActive
	switch {
	case isActive && e.Status.Until != nil:
		o.Message = T("granted (%s): %s is %s until %s", clipName(e.Status.Message), clipName(e.Spec.RequestedBy), clipName(e.Status.User), formatTime(e.Status.Until.Time))
	case e.Status.Message == "":
		o.Message = T("waits for the operator")
	}
	if r.Approve && !own && !isActive && e.Spec.ApprovedBy == "" {
		o.Forms = append(o.Forms, ElevationForm{Path: forms + ApproveElevation, Button: T("Approve")})
	}
	if own && isActive && r.Key == e.Name {
		o.Forms = append(o.Forms, ElevationForm{Path: forms + UseElevation, Button: T("Use"), Note: T("The pages then have the rights of the elevation. To leave it earlier, log out.")})
	} else if own && r.Key != e.Name {
		o.Message = T("%s. Its token is encrypted for the browser or the command that requested it", o.Message)
	}
	if r.End {
		o.Forms = append(o.Forms, ElevationForm{Path: forms + EndElevation, Button: T("End")})
	}
	return o
}

// clipName truncates a name, so that the text after it stays.
func clipName(name string) string {
	const most = 500
	if len(name) <= most {
		return name
	}
	return cutText(name, most) + "…"
}

// DescribeElevation returns a request in one sentence, in the words of `croft elevate approve`.
func DescribeElevation(e *v1alpha1.Elevation) Text {
	return T("%s requests the role %s in namespace %s for %s: %s", e.Spec.RequestedBy, e.Spec.Role, e.Namespace,
		wording.FormatDuration(e.Spec.Duration.Duration), wording.EscapeLine(e.Spec.Reason))
}

// NewElevationConfirmation returns the page that asks before a change of an elevation.
func NewElevationConfirmation(namespace string, body Confirmation) Page {
	body.Back = ElevationsPath(namespace)
	p := Page{Title: body.Question, Heading: body.Question, Namespace: namespace, Tab: TabAccess, Body: body}
	if body.Command != "" {
		p.Commands = []string{body.Command}
	}
	return p
}
