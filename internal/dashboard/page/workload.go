package page

import (
	"net/url"
	"strings"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"

	"croft.dev/croft/internal/dashboard/workloads"
	"croft.dev/croft/internal/diagnose/why"
	"croft.dev/croft/internal/observe/events"
)

// Details are the parts of a workload's page that `croft why` does not print.
type Details struct {
	Events []corev1.Event
	// Pods are the pods of a workload; none for a pod.
	Pods []corev1.Pod
	// Log is the log of a pod; nil for other kinds.
	Log *Log
	// Changes are the changes that the page offers.
	Changes []Change
	// Command is the form that runs commands in a pod; nil if the page offers none.
	Command *CommandForm
}

// Log is the end of the log of one container.
type Log struct {
	// Containers are all containers of the pod, and Container the one that the log is of.
	Containers []string
	Container  string
	// Previous means the log of the container before its last restart.
	Previous bool
	Text     string
	// Problem explains why there is no log.
	Problem string
	// Path is the path of the page, and Download the path of the whole log.
	Path, Download string
	// Stream is the URL of the stream that continues the log; empty for a log that no longer changes.
	Stream string
}

// Change is a form that changes a workload.
type Change struct {
	// Name is the last segment of its path.
	Name string
	// Path is the path of the form.
	Path string
	// Replicas is the present number of replicas; nil if the form has no number.
	Replicas *int32
}

// IsScale reports whether the form has a number of replicas.
func (c Change) IsScale() bool { return c.Name == "scale" }

const (
	// mostEvents is the maximum number of events, and mostPods of pods.
	mostEvents, mostPods = 50, 50
	// longestLog is the maximum size of a log on a page in bytes.
	longestLog = 100_000
	// LongestLine is the maximum size of a line of a log in bytes.
	LongestLine = 2_000
)

// NewWorkload returns the page of one workload: the explanation of `croft why`, then its pods,
// events and log.
func NewWorkload(s *why.Story, d Details) Page {
	p := NewStory(s)
	body, ok := p.Body.(Story)
	if !ok {
		return p
	}
	t := s.Target
	path := workloadPath(t)
	for _, c := range d.Changes {
		c.Path = path + "/" + c.Name
		body.Changes = append(body.Changes, c)
	}
	if len(d.Pods) > 0 {
		body.Details = append(body.Details, listPods(t.Namespace, d.Pods))
	}
	body.Details = append(body.Details, listEvents(d.Events))
	p.Commands = append(p.Commands, "kubectl events --for "+t.String()+" -n "+t.Namespace)
	if d.Log != nil {
		l := *d.Log
		l.Path, l.Download, l.Text = path, path+"/log", clipLog(l.Text)
		if l.Container != "" && !l.Previous {
			l.Stream = l.Download + "?live=1&container=" + url.QueryEscape(clip(l.Container))
		}
		body.Log = &l
		command := "kubectl logs " + t.String() + " -c " + l.Container + " -n " + t.Namespace
		if l.Previous {
			command += " --previous"
		}
		p.Commands = append(p.Commands, command)
	}
	if d.Command != nil {
		form := *d.Command
		form.Path, body.Command = commandPath(t), &form
		p.Commands = append(p.Commands, describeExec(t, form.Container, "COMMAND"))
	}
	p.Body = body
	return p
}

func listPods(namespace string, pods []corev1.Pod) Section {
	s := Section{Heading: T("Pods"), Note: T("A pod's page has its log."), Head: listHeads("Pod", "State")}
	for i := range pods[:min(len(pods), mostPods)] {
		state, verdict := workloads.EvaluatePod(&pods[i])
		s.Rows = append(s.Rows, []Cell{{Text: pods[i].Name, Link: Link("namespaces", namespace, "workloads", "pod", pods[i].Name)}, {Text: state, Verdict: verdict}})
	}
	return s
}

func listEvents(all []corev1.Event) Section {
	s := Section{
		Heading: T("Events"), Head: listHeads("Time", "Object", "Reason", "Message", "From"),
		Empty: T("There are no events: Kubernetes deletes them after an hour, and you may see none without the right to list events."),
	}
	for i := range all[:min(len(all), mostEvents)] {
		e := &all[i]
		reason := Cell{Text: e.Reason}
		if e.Type == corev1.EventTypeWarning {
			reason.Verdict = why.Waiting
		}
		from := e.Source.Component
		if from == "" {
			from = e.ReportingController
		}
		s.Rows = append(s.Rows, []Cell{
			{Text: formatTime(events.LastObserved(e))}, {Text: strings.ToLower(e.InvolvedObject.Kind) + "/" + e.InvolvedObject.Name}, reason, {Text: e.Message}, {Text: from},
		})
	}
	return s
}

// clipLog returns the end of a log, with shortened lines.
func clipLog(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		end := ""
		if rest, ok := strings.CutSuffix(line, "\n"); ok {
			line, end = rest, "\n"
		}
		b.WriteString(ClipLine(line) + end)
	}
	text = b.String()
	if len(text) <= longestLog {
		return text
	}
	text = text[len(text)-longestLog:]
	if _, rest, ok := strings.Cut(text, "\n"); ok {
		return rest
	}
	return text
}

// ClipLine truncates a long line of a log.
func ClipLine(line string) string {
	if len(line) <= LongestLine {
		return line
	}
	return cutText(line, LongestLine) + "…"
}

// cutText returns the first bytes of a text, without a part of a character.
func cutText(text string, most int) string {
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most]
}
