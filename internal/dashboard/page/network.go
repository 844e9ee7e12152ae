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
		Heading: "Connections of " + namespace, Head: []string{"Peer", "From the peer", "Decided by", "To the peer", "Decided by"},
		Note: "The policies of " + namespace + " decide about one end of each connection. The policies of the peer must allow it, too.",
	}
	if s.Labels == nil {
		table.Note += " You may not list namespaces: policies that select other labels than kubernetes.io/metadata.name and " +
			"croft.dev/tenant count as not selecting the peer."
	}
	switch {
	case s.HasWall() && s.IsTooLarge():
		table.Note, table.Empty = "", "The NetworkPolicies of this namespace have too many selectors, peers and ports for this page: use the commands below."
	case !s.HasWall():
		table.Note = ""
		table.Empty = "croft's wall is not among the NetworkPolicies of this namespace: the platform writes it in Calico's kinds, " +
			"or the operator has not written it yet. Ask a platform admin for croft reach."
	}
	for _, p := range peers {
		row := []Cell{{Text: describePeer(p, s)}, {Text: "-"}, {Text: "-"}}
		if p.From != nil {
			row = []Cell{row[0], newConnectionCell(p, p.From), {Text: p.From.Ingress.Describe()}}
		}
		table.Rows = append(table.Rows, append(row, newConnectionCell(p, p.To), Cell{Text: p.To.Egress.Describe()}))
	}
	if len(peers) > 0 {
		table.Diagram = newDiagram(s, peers)
	}
	return Page{
		Title: "Network of " + namespace, Heading: "Network of " + namespace, Namespace: namespace, Tab: TabNetwork,
		Commands: []string{"kubectl describe networkpolicies -n " + namespace, "croft reach --from " + namespace + " --to NAMESPACE"},
		Body:     Sections{table, listPolicies(s)},
	}
}

func describePeer(p connections.Peer, s *connections.Snapshot) string {
	switch {
	case p.Platform:
		return p.Name + " (platform)"
	case p.Name == s.Namespace:
		return p.Name + " (this namespace)"
	default:
		return p.Name
	}
}

const otherTenantDecides = "the other tenant decides"

// newConnectionCell marks a connection that should be denied as bad. With open egress, a tenant's own
// policies allow connections to other tenants, whose policies deny them.
func newConnectionCell(p connections.Peer, v *netpol.Verdict) Cell {
	switch {
	case !v.Allowed:
		return Cell{Text: v.Describe()}
	case p.Name == netpol.Metadata, p.Name == connections.OtherTenants && v == p.From:
		return Cell{Text: v.Describe(), Verdict: why.Bad}
	case p.Name == connections.OtherTenants:
		return Cell{Text: otherTenantDecides}
	default:
		return Cell{Text: v.Describe(), Verdict: why.Good}
	}
}

// listPolicies lists the policies that decide.
func listPolicies(s *connections.Snapshot) Section {
	t := Section{
		Heading: "NetworkPolicies", Head: []string{"Policy", "Of croft"},
		Empty: "There are no NetworkPolicies: NetworkPolicies of your own can allow less than croft's wall, and never more.",
	}
	for i := range s.Policies {
		own := "no"
		if connections.IsManaged(&s.Policies[i]) {
			own = "yes"
		}
		t.Rows = append(t.Rows, []Cell{{Text: s.Policies[i].Name}, {Text: own}})
	}
	return t
}
