package chart

import (
	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/adoption/migrate/draft"
	"croft.dev/croft/internal/adoption/migrate/source"
)

// Read reads the pools and tenants of the values files.
func Read(d *draft.Draft) {
	for _, o := range d.ValuesFiles() {
		for _, f := range o.At("nodePools").Fields() {
			readPool(d, f)
		}
		o.At("nodePools").MarkKept("pools")
		for _, f := range o.At("tenants").Fields() {
			readTenant(d, f)
		}
		o.At("tenants").MarkKept("tenants")
	}
}

// ReadGlobals reads the global values. It runs before the pools, which may override them.
func ReadGlobals(d *draft.Draft) {
	for _, o := range d.ValuesFiles() {
		readGlobal(d, o.At("global"))
	}
}

func readGlobal(d *draft.Draft, f source.Field) {
	if host := f.At("tenantHostPrefix"); host.Found() {
		d.Platform.TenantDomain = host.Text()
		host.MarkKept("platform.tenantDomain")
	}
	if name := f.At("clusterName"); name.Found() {
		d.Platform.ClusterName = name.Text()
		name.MarkKept("platform.clusterName")
	}
	if dns := f.At("clusterDNS"); dns.Found() {
		d.Platform.ClusterDNS = dns.Texts()
		dns.MarkKept("platform.clusterDNS")
	}
	f.At("clusterHostname").MarkNotKept("croft publishes no hosts of the cluster itself: keep the setting in your ingress controller")
}

func readPool(d *draft.Draft, f source.Field) {
	name := draft.ToName(f.Key())
	p := d.Pools[name]
	if p == nil {
		p = &draft.Pool{From: f.Object(), Values: []string{f.Key()}}
		d.Pools[name] = p
	} else {
		d.AddNote("pool %s is in the values file and in %s: where both set a field, the values file counts", name, p.From.ID())
	}
	if name != f.Key() {
		f.MarkChanged("pools."+name, "a pool's name becomes a label and a taint: small letters, digits and '-'")
	} else {
		f.MarkKept("pools." + name)
	}
	instances := f.At("instances")
	instances.MarkKept(draft.PoolField(name, "instances"))
	if types := instances.At("capacityTypes"); types.Found() {
		p.Spec.Instances.CapacityTypes = draft.DistinctAs[v1alpha1.CapacityType](types.Texts())
		types.MarkKept(draft.PoolField(name, "instances.capacityTypes"))
	}
	if types := instances.At("instanceTypes"); types.Found() {
		p.Spec.Instances.InstanceTypes = types.Texts()
		types.MarkKept(draft.PoolField(name, "instances.instanceTypes"))
	}
	readTTL(d, findEither(instances, f, "emptyTtl"), draft.PoolField(name, "emptyTTL"), &p.Spec.EmptyTTL,
		"the chart's default, an hour, is croft's too")
	readTTL(d, findEither(instances, f, "ttl"), draft.PoolField(name, "ttl"), &p.Spec.TTL, "the chart set no maximum age of nodes; croft's default is also Never")
	if code := f.At("costCode"); code.Found() {
		p.Spec.CostCode = code.Text()
		code.MarkKept(draft.PoolField(name, "costCode"))
	}
}

// findEither returns a field of instances if the file has it there, or else of the pool.
func findEither(instances, pool source.Field, key string) source.Field {
	if f := instances.At(key); f.Found() {
		return f
	}
	if f := pool.At(key); f.Found() {
		return f
	}
	return instances.At(key)
}

func readTTL(d *draft.Draft, f source.Field, to string, ttl *v1alpha1.Duration, unset string) {
	if !f.Found() {
		if *ttl == "" {
			f.MarkUnset(to, "%s", unset)
		}
		return
	}
	n, ok := f.Number()
	if !ok || n < 0 {
		f.MarkNotKept("is not a number of seconds")
		d.ReportProblem(f, "%q is not a number of seconds; write one such as 600", f.Text())
		return
	}
	*ttl = draft.FormatSeconds(n)
	f.MarkKeptAs(to, "%d seconds are %s", n, *ttl)
}

func readTenant(d *draft.Draft, f source.Field) {
	name := draft.ToName(f.Key())
	t := d.AddTenant(name, f.Object())
	if name != f.Key() {
		f.MarkChanged("tenants."+name, "a tenant's name becomes a namespace and a domain: small letters, digits and '-'")
	} else {
		f.MarkKept("tenants." + name)
	}
	if p := f.At("nodePool"); p.Found() {
		d.Place(t, name, p, draft.ToName(p.Text()))
	}
	if group := f.At("operatorEdGroup"); group.Found() {
		t.Spec.Access = append(t.Spec.Access, v1alpha1.Access{Group: group.Text(), Role: v1alpha1.RoleOperator})
		group.MarkKeptAs(draft.TenantField(name, "access"), "croft adds the prefix platform.groupPrefix, as the API server does for groups of its identity provider")
	}
	if domains := f.At("domains"); domains.Found() {
		t.Spec.Domains = draft.Distinct(append(t.Spec.Domains, domains.Texts()...))
		domains.MarkKept(draft.TenantField(name, "domains"))
	}
}
