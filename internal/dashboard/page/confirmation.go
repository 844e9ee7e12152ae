package page

import "croft.dev/croft/internal/diagnose/why"

// Confirmation is a page that asks before a change.
type Confirmation struct {
	// Question names the change, and Effect describes it.
	Question, Effect Text
	// Refused is the API server's refusal of a dry run. Then the page has no button.
	Refused  Text
	Warnings []string
	// Action is the path of the form, Fields are its values, and Button its label.
	Action string
	Fields map[string]string
	Button Text
	// Back is the path of the workload.
	Back string
	// Command does the same in a terminal.
	Command string
}

func (Confirmation) templateName() string { return "confirmation" }

// NewConfirmation returns the page that asks before a change of a workload.
func NewConfirmation(t why.Target, body Confirmation) Page {
	p := Page{Title: body.Question, Heading: body.Question, Namespace: t.Namespace, Tab: TabWorkloads, Body: body}
	if body.Command != "" {
		p.Commands = []string{body.Command}
	}
	return p
}
