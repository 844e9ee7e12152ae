package page

import (
	"time"

	"croft.dev/croft/api/v1alpha1"
)

// NewStart returns the start page: a form that opens a namespace, and the tenants that the user may
// list. hidden means that the user may list none, as at an API server without croft proxy.
func NewStart(tenants []v1alpha1.Tenant, hidden bool, now time.Time) Page {
	open := Section{
		Heading: "Open a namespace", Note: "The pages of a namespace show its tenant, workloads, network, hosts, quota and access, and try manifests.",
		Search: &Search{Action: "/open", Name: "namespace", Label: "Name of a namespace of your tenant", Button: "Open"},
	}
	p := NewTenants(tenants, Filter{}, now)
	p.Title, p.Heading = "Start", "croft"
	if hidden {
		p.Commands, p.Body = []string{"croft me -n NAMESPACE"}, Sections{open}
		return p
	}
	if list, ok := p.Body.(Sections); ok {
		list[0].Heading = "Your tenants"
		p.Body = append(append(Sections{open}, list...), listPlatformPages())
	}
	return p
}

// listPlatformPages lists the pages that show no namespace.
func listPlatformPages() Section {
	return Section{
		Heading: "Platform", Head: []string{"Page", "Shows"},
		Rows: [][]Cell{
			{{Text: "Tenants", Link: "/tenants"}, {Text: "all tenants, with a search"}},
			{{Text: "Pools and nodes", Link: "/pools"}, {Text: "pools, nodes, and failed launches with their causes"}},
			{{Text: "Walls", Link: "/walls"}, {Text: "the last verification, repaired drift and refused pods, for platform admins"}},
			{{Text: "Cost", Link: "/costs"}, {Text: "months, trend, forecast and breakdown, for platform admins and auditors"}},
		},
	}
}
