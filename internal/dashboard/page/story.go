package page

import (
	"croft.dev/croft/internal/diagnose/catalog"
	"croft.dev/croft/internal/diagnose/why"
)

// Story is the explanation of a workload.
type Story struct {
	Summary string
	Verdict why.Verdict
	First   *catalog.Finding
	Steps   []Step
	Latency string
	// Changes are forms that change the workload.
	Changes []Change
	// Command is a form that runs commands in a pod; nil if the user may not, or if no container runs.
	Command *CommandForm
	// Details are tables below the steps.
	Details Sections
	// Log is the end of a pod's log.
	Log *Log
}

// Step is an observation at one link of the chain.
type Step struct {
	why.Step
	// New is the step's finding, unless the page shows it further up.
	New *catalog.Finding
}

// NewStory returns the page of one workload, in the words of `croft why`.
func NewStory(s *why.Story) Page {
	body := Story{Summary: s.Headline(), Verdict: s.Verdict, First: s.First, Latency: s.Latency}
	for i, f := range s.ListNewFindings() {
		body.Steps = append(body.Steps, Step{s.Steps[i], f})
	}
	t := s.Target
	return Page{
		Title: T("%s in %s", t.String(), t.Namespace), Heading: Raw(t.String()), Namespace: t.Namespace, Tab: TabWorkloads,
		Commands: []string{"croft why " + t.String() + " -n " + t.Namespace, "kubectl describe " + t.String() + " -n " + t.Namespace},
		Body:     body,
	}
}

// IfItLasts introduces the finding of a step that is Waiting.
func (s Step) IfItLasts() string {
	if s.Verdict != why.Waiting {
		return ""
	}
	return why.IfItLasts
}

// ByPlatform reports whether only a platform admin can fix the cause.
func (Story) ByPlatform(f *catalog.Finding) bool { return f.Who == catalog.Platform }
