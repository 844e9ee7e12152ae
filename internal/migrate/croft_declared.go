package migrate

import (
	"croft.dev/croft/api/v1alpha1"
)

// declared takes over what is declared to croft already, as it stands. What croft
// made of it is then nobody's to migrate.
func (d *draft) declared() {
	group := v1alpha1.GroupVersion.Group
	for _, o := range d.of(group, "Platform") {
		take(o, "platform", &d.platform)
	}
	for _, o := range d.of(group, "Pool") {
		p := &pool{from: o, values: []string{o.Name}}
		take(o, "pools."+o.Name, &p.spec)
		d.pools[o.Name] = p
	}
	for _, o := range d.of(group, "Tenant") {
		t := d.addTenant(o.Name, o)
		take(o, "tenants."+o.Name, &t.spec)
		if len(t.spec.Namespaces) > 0 {
			d.has(t, o.Name, t.spec.Namespaces)
		}
	}
	for _, o := range d.of(group, "SecondaryNetwork") {
		var spec v1alpha1.SecondaryNetworkSpec
		take(o, "secondaryNetworks."+o.Name, &spec)
		d.secondary[o.Name] = spec
	}
	if len(d.of(group, "Platform")) == 0 {
		return
	}
	for _, o := range d.objects {
		if !o.skip && len(o.entries) == 0 && managed(o) {
			o.Root().Other("croft wrote it itself, of what is declared")
			o.skip = true
		}
	}
}

func take(o *Object, to string, spec any) {
	frame(o, to)
	if err := o.At("spec").Into(spec); err != nil {
		o.At("spec").NotKept("cannot be read: %v", err)
		return
	}
	o.At("spec").Kept(to)
}

// managed says whether croft wrote an object.
func managed(o *Object) bool {
	return o.At("metadata", "labels", v1alpha1.ManagedByLabel).Text() == v1alpha1.ManagedBy
}
