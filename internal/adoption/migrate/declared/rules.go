package declared

import (
	"maps"
	"slices"
	"strings"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/adoption/migrate/draft"
	"croft.dev/croft/internal/declare/estate"
)

// ReadRules reads back the TenantRules that croft compiled from its tenants.
func ReadRules(d *draft.Draft) {
	ruled := map[string]bool{}
	resulting := map[string]string{} // the tenant domain that results from each tenant's first domain
	for _, o := range d.List(v1alpha1.GroupVersion.Group, "TenantRules") {
		var spec v1alpha1.TenantRulesSpec
		name := o.At("spec", "tenant").Text()
		readSpec(o, "tenants."+name, &spec)
		if name == "" {
			o.Root().MarkNotKept("names no tenant")
			continue
		}
		ruled[name] = true
		t := d.AddTenant(name, o)
		readRules(d, name, t, &spec)
		t.Subjects = spec.Subjects
		o.At("spec", "platformNamespaces").MarkKept("platform.network.platformNamespaces")
		d.Platform.Network.PlatformNamespaces = draft.Distinct(append(d.Platform.Network.PlatformNamespaces, spec.PlatformNamespaces...))
		if len(spec.Domains) > 1 && spec.Domains[1] == "*."+spec.Domains[0] {
			if domain, ok := strings.CutPrefix(spec.Domains[0], name+"."); ok {
				resulting[name] = domain
			}
		}
	}
	domains := draft.Distinct(slices.Collect(maps.Values(resulting)))
	// If only some tenants have such a domain, it was granted to them by name: a tenantDomain
	// of the platform would grant it to all.
	if len(domains) != 1 || len(resulting) != len(ruled) || d.Platform.TenantDomain != "" && d.Platform.TenantDomain != domains[0] {
		return
	}
	d.Platform.TenantDomain = domains[0]
	for name := range resulting {
		t := d.Tenants[name]
		t.Spec.Domains = slices.DeleteFunc(t.Spec.Domains, func(domain string) bool {
			return strings.TrimPrefix(domain, "*.") == name+"."+domains[0]
		})
	}
}

// readRules sets a tenant's fields from its rules, except for defaults.
func readRules(d *draft.Draft, name string, t *draft.Tenant, r *v1alpha1.TenantRulesSpec) {
	s := &t.Spec
	s.Pool, s.Pools = "", nil
	if len(r.Pools) == 1 {
		s.Pool = r.Pools[0]
	} else {
		s.Pools = r.Pools
	}
	if !slices.Equal(r.Namespaces, []string{name}) {
		d.SetNamespaces(t, name, r.Namespaces)
	}
	s.Domains = draft.Distinct(append(s.Domains, r.Domains...))
	if r.Egress != v1alpha1.EgressOpen {
		s.Network.Egress = r.Egress
	}
	if len(r.AllowCIDRs) > 0 {
		s.Network.AllowCIDRs = r.AllowCIDRs
	}
	estate.ReadAllowances(r, &s.Policy.Allowances)
}
