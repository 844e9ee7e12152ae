package page

import (
	"strings"

	"croft.dev/croft/internal/declare/wording"
	"croft.dev/croft/internal/diagnose/why"
)

const (
	// LongestCommand is the maximum size of a command in bytes, quoted for a shell.
	LongestCommand = 2000
	// LongestOutput is the maximum size of a command's output in bytes. On the page, a byte may need five.
	LongestOutput = 128 << 10
	// CommandSeconds is the maximum duration of a command in seconds.
	CommandSeconds = 30
)

// CommandForm is a form that runs a command in a container of a pod.
type CommandForm struct {
	// Path is the path of the form.
	Path string
	// Containers are the containers of the pod that run, and Container the chosen one.
	Containers []string
	Container  string
	// Command is the previous command; empty before the first.
	Command string
}

// CommandResult is the result of a command.
type CommandResult struct {
	// State describes how the command ended, or why it did not run.
	State   Text
	Verdict why.Verdict
	// Ran means that the command ran.
	Ran bool
	// Stdout and Stderr are the output. Cut means that it was longer.
	Stdout, Stderr string
	Cut            bool
}

// Command is the page with the result of a command.
type Command struct {
	CommandResult
	Form CommandForm
	// Back is the path of the pod.
	Back string
}

func (Command) templateName() string { return "command" }

// NewCommand returns the page with the result of a command, and a form for the next one.
func NewCommand(pod why.Target, form CommandForm, result CommandResult) Page {
	form.Path = commandPath(pod)
	result.Stdout = cutOutput(result.Stdout, LongestOutput)
	result.Stderr = cutOutput(result.Stderr, LongestOutput-len(result.Stdout))
	return Page{
		Title: T("Command in %s", pod.String()), Heading: T("Command in %s", pod.String()), Namespace: pod.Namespace, Tab: TabWorkloads,
		Commands: []string{describeExec(pod, form.Container, quoteWord(form.Command))},
		Body:     Command{CommandResult: result, Form: form, Back: workloadPath(pod)},
	}
}

// CheckCommand returns the problem of a command that the page could not repeat unchanged.
func CheckCommand(command string) Text {
	switch {
	case strings.TrimSpace(command) == "":
		return T("the command is empty: write one, such as ls -l")
	case len(quoteWord(command)) > LongestCommand:
		return T("the command has more than %d characters: write a part of it into a script", LongestCommand)
	case wording.EscapeLine(command) != command:
		return T("the command must be one line without tabs and invisible characters")
	}
	return nil
}

// CommandForm returns the form for commands on this page; nil without one.
func (p Page) CommandForm() *CommandForm {
	switch body := p.Body.(type) {
	case Story:
		return body.Command
	case Command:
		return &body.Form
	default:
		return nil
	}
}

// describeExec returns the command that does the same in a terminal.
func describeExec(pod why.Target, container, quoted string) string {
	return "kubectl exec " + pod.String() + " -c " + container + " -n " + pod.Namespace + " -- sh -c " + quoted
}

// quoteWord quotes a word for a POSIX shell.
func quoteWord(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }

func workloadPath(t why.Target) string {
	return Link("namespaces", t.Namespace, "workloads", t.Kind, t.Name)
}

func commandPath(pod why.Target) string { return workloadPath(pod) + "/run" }

func cutOutput(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return cutText(text, most)
}
