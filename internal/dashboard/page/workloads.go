package page

import (
	"time"

	"croft.dev/croft/internal/dashboard/workloads"
	"croft.dev/croft/internal/declare/wording"
)

// NewWorkloads returns the page of a namespace's workloads.
func NewWorkloads(namespace string, l *workloads.List, now time.Time) Page {
	objects := Section{Heading: "Workloads", Empty: "There are no Deployments, StatefulSets, DaemonSets, Jobs or CronJobs: create one with kubectl apply, or try your manifests first with croft try."}
	pods := Section{Heading: "Pods", Empty: "There are no pods."}
	for _, s := range []*Section{&objects, &pods} {
		s.Head = []string{"Name", "Kind", "State", "Age"}
	}
	for _, w := range l.Workloads {
		row := []Cell{newWorkloadCell(w, w.Name), {Text: w.Kind}, {Text: w.State, Verdict: w.Verdict}, {Text: formatAge(w.Created, now)}}
		if w.Kind == "pod" {
			pods.Rows = append(pods.Rows, row)
		} else {
			objects.Rows = append(objects.Rows, row)
		}
	}
	if len(l.Hidden) > 0 {
		objects.Note = "You may not list " + wording.Enumerate(l.Hidden, "and") + "."
	}
	return Page{
		Title: "Workloads of " + namespace, Heading: "Workloads of " + namespace, Namespace: namespace, Tab: TabWorkloads,
		Commands: []string{"kubectl get deployments,statefulsets,daemonsets,jobs,cronjobs,pods -n " + namespace},
		Body:     Sections{objects, pods},
	}
}

// newWorkloadCell returns a cell with a link to the explanation of the workload.
func newWorkloadCell(w workloads.Workload, text string) Cell {
	return Cell{Text: text, Link: Link("namespaces", w.Namespace, "workloads", w.Kind, w.Name)}
}
