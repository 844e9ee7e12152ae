package gatekeeper

import (
	"regexp"
	"slices"
	"strings"

	"croft.dev/croft/internal/adoption/migrate/draft"
	"croft.dev/croft/internal/adoption/migrate/source"
)

// routing are the kinds with hosts that a constraint may restrict.
var routing = []string{"Ingress", "Certificate", "Gateway", "HTTPRoute", "GRPCRoute", "TLSRoute", "Route", "VirtualService", "IngressRoute"}

var host = regexp.MustCompile(`^(\*\.)?([a-z0-9]([-a-z0-9]*[a-z0-9])?\.)+[a-z0-9]([-a-z0-9]*[a-z0-9])?$`)

// ReadDomains reads the hosts that each namespace may serve, from constraints of any kind
// that list hosts for routing kinds.
func ReadDomains(d *draft.Draft) {
	for _, o := range d.Objects {
		if o.Skip || o.Group() != draft.ConstraintsGroup {
			continue
		}
		list := findHosts(o)
		switch {
		case draft.IsManaged(o):
			o.Root().MarkKept("tenants")
		case list.Found():
			grantHosts(d, Mutator{o}, list)
		case matchesKinds(o, "Service"):
			accountServices(o)
		default:
			o.Root().MarkNotKept("croft migrate does not know the requirement of a constraint of kind %s: Gatekeeper continues to enforce it, in addition to croft's walls; "+
				"docs/reference/rules.md lists the requirements of the walls", o.Kind)
		}
	}
}

// matchesKinds reports whether a constraint matches one of the kinds.
func matchesKinds(o *source.Object, kinds ...string) bool {
	return slices.ContainsFunc(o.At("spec", "match", "kinds").Items(), func(match source.Field) bool {
		return slices.ContainsFunc(match.At("kinds").Texts(), func(kind string) bool { return slices.Contains(kinds, kind) })
	})
}

// findHosts returns the list of hosts among a constraint's parameters.
func findHosts(o *source.Object) source.Field {
	if !matchesKinds(o, routing...) {
		return source.Field{}
	}
	for _, f := range o.At("spec", "parameters").Fields() {
		texts := f.Texts()
		if len(f.Items()) > 0 && len(texts) == len(f.Items()) &&
			!slices.ContainsFunc(texts, func(text string) bool { return !host.MatchString(strings.ToLower(text)) }) {
			return f
		}
	}
	return source.Field{}
}

// grantHosts adds a constraint's hosts to the tenants of its namespaces.
func grantHosts(d *draft.Draft, m Mutator, list source.Field) {
	source.AccountMetadata(m.Object, "tenants")
	m.At("spec", "match").MarkKept("tenants")
	s := findScope(d, m)
	if s.why != "" {
		s.unknown.MarkNotKept("%s", s.why)
		list.MarkNotKept("is granted to no tenant")
		d.ReportProblem(s.unknown, "%s: the hosts of this constraint are granted to no tenant; write them into tenants.*.domains", s.why)
		m.At("spec").MarkKept("tenants")
		return
	}
	for _, f := range m.At("spec", "parameters").Fields() {
		if f.Key() != list.Key() {
			f.MarkNotKept("croft migrate converts only the hosts: keep the constraint for this")
		}
	}
	switch action := m.At("spec", "enforcementAction"); action.Text() {
	case "", "deny":
		action.MarkKept("tenants")
	default:
		action.MarkChanged("tenants", "was only reported; croft refuses hosts that are not granted")
	}
	found := false
	for _, namespace := range s.namespaces {
		name := d.FindTenant(namespace)
		if name == "" {
			continue
		}
		found = true
		t := d.Tenants[name]
		for _, f := range list.Items() {
			domain := strings.ToLower(f.Text())
			if d.Platform.TenantDomain != "" && strings.TrimPrefix(domain, "*.") == name+"."+d.Platform.TenantDomain {
				f.MarkKeptAs("platform.tenantDomain", "every tenant has <tenant>.%s and all hosts below it", d.Platform.TenantDomain)
				continue
			}
			t.Spec.Domains = draft.Distinct(append(t.Spec.Domains, domain))
			f.MarkKeptAs(draft.TenantField(name, "domains"), "granted only to tenant %s, for all kinds of routes", name)
		}
	}
	if !found {
		list.MarkNotKept("the input has no tenant with one of the namespaces")
	}
	m.At("spec").MarkKept("tenants")
}

// accountServices recognises constraints against NodePorts and load balancers.
func accountServices(o *source.Object) {
	kind := strings.ToLower(o.Kind)
	if strings.Contains(kind, "nodeport") || strings.Contains(kind, "loadbalancer") || strings.Contains(kind, "servicetype") || strings.Contains(kind, "externalip") {
		o.Root().Account(source.Changed, "tenants.*.policy.serviceTypes", "croft refuses Services of every type but ClusterIP, and external IPs, to every tenant; "+
			"allow the types that a tenant needs in policy.serviceTypes, and delete the constraint")
		return
	}
	o.Root().MarkNotKept("croft migrate does not know the requirement of a constraint of kind %s for Services: Gatekeeper continues to enforce it; "+
		"by default croft refuses all types but ClusterIP, and external IPs", o.Kind)
}
