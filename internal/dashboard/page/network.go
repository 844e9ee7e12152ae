package page

import (
	"croft.dev/croft/internal/dashboard/connections"
	"croft.dev/croft/internal/diagnose/why"
	"croft.dev/croft/internal/observe/netpol"
)

// NewNetwork returns the page of the connections of a namespace. peers are the evaluated
// connections, or none if the policies are not croft's.
func NewNetwork(s *connections.Snapshot, peers []connections.Peer) Page {
	namespace := s.Namespace
	table := Section{
		Heading: T("Connections of %s", namespace), Head: listHeads("Peer", "From the peer", "Decided by", "To the peer", "Decided by"),
		Note: T("The policies of %s decide about one end of each connection. The policies of the peer must allow it, too.", namespace),
	}
	if s.Labels == nil {
		table.Note = append(table.Note, T("You may not list namespaces: policies that select other labels than kubernetes.io/metadata.name and "+
			"croft.dev/tenant count as not selecting the peer.")...)
	}
	switch {
	case s.HasWall() && s.IsTooLarge():
		table.Note, table.Empty = nil, T("The NetworkPolicies of this namespace have too many selectors, peers and ports for this page: use the commands below.")
	case !s.HasWall():
		table.Note = nil
		table.Empty = T("croft's wall is not among the NetworkPolicies of this namespace: the platform writes it in Calico's kinds, " +
			"or the operator has not written it yet. Ask a platform admin for croft reach.")
	}
	for _, p := range peers {
		row := []Cell{{PageText: describePeer(p, s)}, {Text: "-"}, {Text: "-"}}
		if p.From != nil {
			row = []Cell{row[0], newConnectionCell(p, p.From), {Text: p.From.Ingress.Describe()}}
		}
		table.Rows = append(table.Rows, append(row, newConnectionCell(p, p.To), Cell{Text: p.To.Egress.Describe()}))
	}
	if len(peers) > 0 {
		table.Diagram = newDiagram(s, peers)
	}
	return Page{
		Title: T("Network of %s", namespace), Heading: T("Network of %s", namespace), Namespace: namespace, Tab: TabNetwork,
		Commands: []string{"kubectl describe networkpolicies -n " + namespace, "croft reach --from " + namespace + " --to NAMESPACE"},
		Body:     Sections{table, listPolicies(s)},
	}
}

func describePeer(p connections.Peer, s *connections.Snapshot) Text {
	switch {
	case p.Platform:
		return T("%s (platform)", p.Name)
	case p.Name == s.Namespace:
		return T("%s (this namespace)", p.Name)
	case p.Name == connections.OtherTenants:
		return T("other tenants")
	default:
		return Raw(p.Name)
	}
}

// The verdicts about connections, in the words of `croft reach`.
var (
	canConnect, cannotConnect = T("can connect"), T("cannot connect")
	otherTenantDecides        = T("the other tenant decides")
)

// newConnectionCell marks a connection that should be denied as bad. With open egress, a tenant's own
// policies allow connections to other tenants, whose policies deny them.
func newConnectionCell(p connections.Peer, v *netpol.Verdict) Cell {
	switch {
	case !v.Allowed:
		return Cell{PageText: cannotConnect}
	case p.Name == netpol.Metadata, p.Name == connections.OtherTenants && v == p.From:
		return Cell{PageText: canConnect, Verdict: why.Bad}
	case p.Name == connections.OtherTenants:
		return Cell{PageText: otherTenantDecides}
	default:
		return Cell{PageText: canConnect, Verdict: why.Good}
	}
}

// listPolicies lists the policies that decide.
func listPolicies(s *connections.Snapshot) Section {
	t := Section{
		Heading: T("NetworkPolicies"), Head: listHeads("Policy", "Of croft"),
		Empty: T("There are no NetworkPolicies: NetworkPolicies of your own can allow less than croft's wall, and never more."),
	}
	for i := range s.Policies {
		own := T("no")
		if connections.IsManaged(&s.Policies[i]) {
			own = T("yes")
		}
		t.Rows = append(t.Rows, []Cell{{Text: s.Policies[i].Name}, {PageText: own}})
	}
	return t
}
