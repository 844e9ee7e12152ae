package migrate

import (
	"croft.dev/croft/api/v1alpha1"
)

func (d *draft) valuesFiles() []*Object {
	var all []*Object
	for _, o := range d.objects {
		if o.Kind == kindValues && !o.skip {
			all = append(all, o)
		}
	}
	return all
}

// values reads the values file of a chart that makes Provisioners, mutators and
// bindings of a list of pools and tenants.
func (d *draft) values() {
	for _, o := range d.valuesFiles() {
		for _, f := range o.At("nodePools").Fields() {
			d.valuesPool(f)
		}
		o.At("nodePools").Kept("pools")
		for _, f := range o.At("tenants").Fields() {
			d.valuesTenant(f)
		}
		o.At("tenants").Kept("tenants")
	}
}

// globals come before pools, which may differ from what is said of them all.
func (d *draft) globals() {
	for _, o := range d.valuesFiles() {
		d.global(o.At("global"))
	}
}

func (d *draft) global(f Field) {
	if host := f.At("tenantHostPrefix"); host.Found() {
		d.platform.TenantDomain = host.Text()
		host.Kept("platform.tenantDomain")
	}
	if name := f.At("clusterName"); name.Found() {
		d.platform.ClusterName = name.Text()
		name.Kept("platform.clusterName")
	}
	if dns := f.At("clusterDNS"); dns.Found() {
		d.platform.ClusterDNS = dns.Texts()
		dns.Kept("platform.clusterDNS")
	}
	f.At("clusterHostname").NotKept("croft publishes no hosts for the cluster itself: your ingress controller's settings have it")
}

func (d *draft) valuesPool(f Field) {
	name := asName(f.Key())
	p := d.pools[name]
	if p == nil {
		p = &pool{from: f.object, values: []string{f.Key()}}
		d.pools[name] = p
	} else {
		d.note("pool %s is in the values file and in %s: where both speak, the values file counts", name, p.from.ID())
	}
	if name != f.Key() {
		f.Changed("pools."+name, "a pool's name becomes a label and a taint: small letters, digits and '-'")
	} else {
		f.Kept("pools." + name)
	}
	in := f.At("instances")
	in.Kept(poolField(name, "instances"))
	if types := in.At("capacityTypes"); types.Found() {
		p.spec.Instances.CapacityTypes = typed[v1alpha1.CapacityType](types.Texts())
		types.Kept(poolField(name, "instances.capacityTypes"))
	}
	if types := in.At("instanceTypes"); types.Found() {
		p.spec.Instances.InstanceTypes = types.Texts()
		types.Kept(poolField(name, "instances.instanceTypes"))
	}
	d.valuesTTL(either(in, f, "emptyTtl"), poolField(name, "emptyTTL"), &p.spec.EmptyTTL,
		"the chart's default, an hour, is croft's too")
	d.valuesTTL(either(in, f, "ttl"), poolField(name, "ttl"), &p.spec.TTL, "the chart set none, so nodes grow as old as they like; croft's default is Never too")
	if code := f.At("costCode"); code.Found() {
		p.spec.CostCode = code.Text()
		code.Kept(poolField(name, "costCode"))
	}
}

// either is a field of instances, where the chart has it, or of the pool.
func either(in, pool Field, key string) Field {
	if f := in.At(key); f.Found() {
		return f
	}
	if f := pool.At(key); f.Found() {
		return f
	}
	return in.At(key)
}

func (d *draft) valuesTTL(f Field, to string, ttl *v1alpha1.Duration, unset string) {
	if !f.Found() {
		if *ttl == "" {
			f.Unset(to, "%s", unset)
		}
		return
	}
	n, ok := f.Number()
	if !ok || n < 0 {
		f.NotKept("is no number of seconds")
		d.problem(f, "%q is no number of seconds; write one such as 600", f.Text())
		return
	}
	*ttl = seconds(n)
	f.KeptAs(to, "%d seconds are %s", n, *ttl)
}

func (d *draft) valuesTenant(f Field) {
	name := asName(f.Key())
	t := d.addTenant(name, f.object)
	if name != f.Key() {
		f.Changed("tenants."+name, "a tenant's name becomes a namespace and a domain: small letters, digits and '-'")
	} else {
		f.Kept("tenants." + name)
	}
	if p := f.At("nodePool"); p.Found() {
		d.place(t, name, p, asName(p.Text()))
	}
	if group := f.At("operatorEdGroup"); group.Found() {
		t.spec.Access = append(t.spec.Access, v1alpha1.Access{Group: group.Text(), Role: v1alpha1.RoleOperator})
		group.KeptAs(tenantField(name, "access"), "croft puts platform.groupPrefix before it, as the API server does before the groups of its identity provider")
	}
	if domains := f.At("domains"); domains.Found() {
		t.spec.Domains = distinct(append(t.spec.Domains, domains.Texts()...))
		domains.Kept(tenantField(name, "domains"))
	}
}

func distinct[T comparable](list []T) []T {
	var all []T
	seen := map[T]bool{}
	for _, v := range list {
		if !seen[v] {
			seen[v] = true
			all = append(all, v)
		}
	}
	return all
}
