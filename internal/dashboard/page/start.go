package page

import (
	"time"

	"croft.dev/croft/api/v1alpha1"
)

// NewStart returns the start page: a form that opens a namespace, and the tenants that the user may
// list. hidden means that the user may list none, as at an API server without croft proxy.
func NewStart(tenants []v1alpha1.Tenant, hidden bool, now time.Time) Page {
	open := Section{
		Heading: T("Open a namespace"), Note: T("The pages of a namespace show its tenant, workloads, network, hosts, quota and access, and try manifests."),
		Search: &Search{Action: "/open", Name: "namespace", Label: T("Name of a namespace of your tenant"), Button: T("Open")},
	}
	p := NewTenants(tenants, Filter{}, now)
	p.Title, p.Heading = T("Start"), Raw("croft")
	if hidden {
		p.Commands, p.Body = []string{"croft me -n NAMESPACE"}, Sections{open}
		return p
	}
	if list, ok := p.Body.(Sections); ok {
		list[0].Heading = T("Your tenants")
		p.Body = append(append(Sections{open}, list...), listPlatformPages())
	}
	return p
}

// listPlatformPages lists the pages that show no namespace.
func listPlatformPages() Section {
	return Section{
		Heading: T("Platform"), Head: listHeads("Page", "Shows"),
		Rows: [][]Cell{
			{{PageText: T("Tenants"), Link: "/tenants"}, {PageText: T("all tenants, with a search")}},
			{{PageText: T("Pools and nodes"), Link: "/pools"}, {PageText: T("pools, nodes, and failed launches with their causes")}},
			{{PageText: T("Walls"), Link: "/walls"}, {PageText: T("the last verification, repaired drift and refused pods, for platform admins")}},
			{{PageText: T("Cost"), Link: "/costs"}, {PageText: T("months, trend, forecast and breakdown, for platform admins and auditors")}},
		},
	}
}
