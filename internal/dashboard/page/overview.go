package page

import (
	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/dashboard/workloads"
	"croft.dev/croft/internal/declare/wording"
	"croft.dev/croft/internal/diagnose/me"
	"croft.dev/croft/internal/diagnose/why"
)

// NewOverview returns the page of a tenant and one of its namespaces, with the problems of the
// namespace first. pods are the pods that the user may list.
func NewOverview(namespace string, m *me.Me, pods []workloads.Workload) Page {
	return Page{
		Title: T("Tenant %s", m.Tenant), Heading: T("Tenant %s", m.Tenant), Namespace: namespace, Tab: TabOverview,
		Commands: []string{"croft me -n " + namespace},
		Body:     Sections{listProblems(namespace, m, pods), listNamespaces(m), listAllowances(m), listRestrictions(m)},
	}
}

// mostProblems is the maximum number of pods among the problems.
const mostProblems = 30

func listProblems(namespace string, m *me.Me, pods []workloads.Workload) Section {
	s := Section{Heading: T("Problems in %s", namespace), Head: listHeads("Object", "State", "Explanation"), Empty: T("No pod waits or fails, and no pods are refused: the pages of workloads and of quota show more.")}
	for _, w := range m.Refused {
		s.Rows = append(s.Rows, newRefusedRow(w))
	}
	failing := 0
	for _, p := range pods {
		if p.Verdict == why.Good {
			continue
		}
		if failing++; failing <= mostProblems {
			s.Rows = append(s.Rows, []Cell{newWorkloadCell(p, p.Kind+" "+p.Namespace+"/"+p.Name), {Text: p.State, Verdict: p.Verdict}, {PageText: T("open the pod for the cause")}})
		}
	}
	if more := failing - mostProblems; more > 0 {
		s.Note = T("%d more pods wait or fail: the pages of workloads list them.", more)
	}
	return s
}

// newRefusedRow returns a row about a workload whose pods are refused, with a link to the cause.
func newRefusedRow(w v1alpha1.RefusedWorkload) []Cell {
	return []Cell{
		{Text: w.Kind + " " + w.Namespace + "/" + w.Name, Link: Link("namespaces", w.Namespace, "workloads", w.Kind, w.Name)},
		{PageText: T("pods are refused"), Verdict: why.Bad}, {Text: w.Message},
	}
}

func listNamespaces(m *me.Me) Section {
	s := Section{Heading: T("Namespaces"), Note: T("Each page shows one namespace."), Head: listHeads("Namespace", "Quota", "Access")}
	for _, n := range m.Namespaces {
		s.Rows = append(s.Rows, []Cell{
			{Text: n.Name, Link: Link("namespaces", n.Name)},
			{PageText: T("quota"), Link: Link("namespaces", n.Name, "quota")}, {PageText: T("your roles"), Link: Link("namespaces", n.Name, "access")},
		})
	}
	return s
}

func listAllowances(m *me.Me) Section {
	s := Section{Heading: T("You may use"), Head: listHeads("Field", "Values"), Rows: [][]Cell{
		{{Text: "pools"}, {Text: wording.JoinNames(m.Rules.Pools)}}, {{Text: "egress"}, {Text: string(m.Rules.Egress)}},
	}}
	for _, a := range m.ListAllowances() {
		s.Rows = append(s.Rows, []Cell{{Text: a.Name}, {Text: a.Values}})
	}
	return s
}

func listRestrictions(m *me.Me) Section {
	return Section{Heading: T("You may not have"), List: listRaw(m.Restrictions)}
}
