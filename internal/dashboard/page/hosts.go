package page

import (
	"strings"

	"croft.dev/croft/internal/dashboard/hosts"
	"croft.dev/croft/internal/diagnose/me"
	"croft.dev/croft/internal/diagnose/why"
)

// NewHosts returns a page of the hosts of a namespace, for one group of kinds.
func NewHosts(namespace string, m *me.Me, s *hosts.Snapshot) Page {
	domains := Section{
		Heading: T("Domains of tenant %s", m.Tenant), List: listRaw(m.Rules.Domains),
		Note:  T("The tenant's objects may have these hosts. *.example.org stands for every host below example.org."),
		Empty: T("The tenant has no domains: a platform admin grants them as domains of the Tenant."),
	}
	names := s.Group.ListNames()
	used := Section{
		Heading: T("Hosts of %s", nameList(names)), Head: listHeads("Host", "Object", "State"),
		Empty: T("None of the %s has a host: write one with a host below the domains.", nameList(names)),
	}
	if len(s.Hidden) > 0 {
		used.Note = describeHidden(s.Hidden)
	}
	outside := 0
	for _, u := range hosts.List(s.Objects, m.Rules.Domains) {
		object := Cell{Text: u.Kind + "/" + u.Name}
		if u.Kind == "Ingress" || u.Kind == "Certificate" {
			object.Link = Link("namespaces", namespace, "workloads", u.Kind, u.Name)
		}
		host, state := Cell{Text: u.Host}, Cell{PageText: T("allowed"), Verdict: why.Good}
		if u.Host == "" {
			host.PageText = T("every host")
		}
		if !u.Allowed {
			state = Cell{PageText: T("refused: outside of the domains"), Verdict: why.Bad}
			outside++
		}
		used.Rows = append(used.Rows, []Cell{host, object, state})
	}
	if outside > 0 {
		used.Note = append(used.Note, T("A refused host is older than the rules, or lost its domain: the next change of the object is refused. Ask a platform admin for the domain, or change the host.")...)
	}
	return Page{
		Title: T("Hosts of %s", namespace), Heading: T("Hosts of %s", namespace), Namespace: namespace, Tab: TabHosts,
		Commands: []string{"croft me -n " + namespace, "kubectl get " + strings.ToLower(strings.Join(names, ",")) + " -n " + namespace},
		Body:     Sections{used, listOtherHosts(namespace, s.Group), domains},
	}
}

// listOtherHosts links to the pages of the other groups.
func listOtherHosts(namespace string, shown hosts.Group) Section {
	s := Section{Heading: T("Hosts of other kinds"), Head: listHeads("Page")}
	for _, g := range hosts.Groups {
		if g.Path == shown.Path {
			continue
		}
		segments := []string{"namespaces", namespace, "hosts"}
		if g.Path != "" {
			segments = append(segments, g.Path)
		}
		s.Rows = append(s.Rows, []Cell{{PageText: T("%s", nameList(g.ListNames())), Link: Link(segments...)}})
	}
	return s
}
