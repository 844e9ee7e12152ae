package page

import (
	"time"

	"croft.dev/croft/internal/dashboard/workloads"
)

// NewWorkloads returns the page of a namespace's Deployments, StatefulSets and pods.
func NewWorkloads(namespace string, l *workloads.List, now time.Time) Page {
	objects, pods := listWorkloads(l, now)
	objects.Heading = T("Workloads")
	objects.Empty = T("There are no Deployments and StatefulSets: create one with kubectl apply, or try your manifests first with croft try.")
	pods.Heading, pods.Empty = T("Pods"), T("There are no pods: pods of Jobs would be here, too.")
	return Page{
		Title: T("Workloads of %s", namespace), Heading: T("Workloads of %s", namespace), Namespace: namespace, Tab: TabWorkloads,
		Commands: []string{"kubectl get deployments,statefulsets,pods -n " + namespace},
		Body:     Sections{objects, pods},
	}
}

// NewJobs returns the page of a namespace's Jobs, CronJobs and DaemonSets.
func NewJobs(namespace string, l *workloads.List, now time.Time) Page {
	objects, _ := listWorkloads(l, now)
	objects.Heading = T("Jobs, CronJobs and DaemonSets")
	objects.Empty = T("There are no Jobs, CronJobs and DaemonSets: create one with kubectl apply, or try your manifests first with croft try.")
	return Page{
		Title: T("Jobs of %s", namespace), Heading: T("Jobs of %s", namespace), Namespace: namespace, Tab: TabJobs,
		Commands: []string{"kubectl get jobs,cronjobs,daemonsets -n " + namespace},
		Body:     Sections{objects},
	}
}

// listWorkloads returns a table of the objects that create pods, and a table of the pods.
func listWorkloads(l *workloads.List, now time.Time) (objects, pods Section) {
	objects.Head = listHeads("Name", "Kind", "State", "Age")
	pods.Head = objects.Head
	for _, w := range l.Workloads {
		row := []Cell{newWorkloadCell(w, w.Name), {Text: w.Kind}, {Text: w.State, Verdict: w.Verdict}, newAgeCell(w.Created, now)}
		if w.Kind == "pod" {
			pods.Rows = append(pods.Rows, row)
		} else {
			objects.Rows = append(objects.Rows, row)
		}
	}
	if len(l.Hidden) > 0 {
		objects.Note = describeHidden(l.Hidden)
	}
	return objects, pods
}

// newWorkloadCell returns a cell with a link to the explanation of the workload.
func newWorkloadCell(w workloads.Workload, text string) Cell {
	return Cell{Text: text, Link: Link("namespaces", w.Namespace, "workloads", w.Kind, w.Name)}
}
