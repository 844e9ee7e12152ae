package page

import (
	"time"

	"croft.dev/croft/api/v1alpha1"
)

// NewStart returns the start page: a form that opens a namespace, and the tenants that the user may
// list. hidden means that the user may list none, as at an API server without croft proxy.
func NewStart(tenants []v1alpha1.Tenant, hidden bool, now time.Time) Page {
	open := Section{
		Heading: "Open a namespace", Note: "The pages of a namespace show its tenant, workloads, quota and access.",
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
		p.Body = append(Sections{open}, list...)
	}
	return p
}
