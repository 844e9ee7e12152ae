package declared

import (
	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/migrate/draft"
	"croft.dev/croft/internal/migrate/source"
)

// Objects copies croft's API objects. The objects that croft made from them are then not
// migrated.
func Objects(d *draft.Draft) {
	group := v1alpha1.GroupVersion.Group
	for _, o := range d.Of(group, "Platform") {
		take(o, "platform", &d.Platform)
	}
	for _, o := range d.Of(group, "Pool") {
		p := &draft.Pool{From: o, Values: []string{o.Name}}
		take(o, "pools."+o.Name, &p.Spec)
		d.Pools[o.Name] = p
	}
	for _, o := range d.Of(group, "Tenant") {
		t := d.AddTenant(o.Name, o)
		take(o, "tenants."+o.Name, &t.Spec)
		if len(t.Spec.Namespaces) > 0 {
			d.Has(t, o.Name, t.Spec.Namespaces)
		}
	}
	for _, o := range d.Of(group, "SecondaryNetwork") {
		var spec v1alpha1.SecondaryNetworkSpec
		take(o, "secondaryNetworks."+o.Name, &spec)
		d.Secondary[o.Name] = spec
	}
	if len(d.Of(group, "Platform")) == 0 {
		return
	}
	for _, o := range d.Objects {
		if !o.Skip && !o.Accounted() && draft.Managed(o) {
			o.Root().Other("croft wrote it itself, of what is declared")
			o.Skip = true
		}
	}
}

func take(o *source.Object, to string, spec any) {
	source.Frame(o, to)
	if err := o.At("spec").Into(spec); err != nil {
		o.At("spec").NotKept("cannot be read: %v", err)
		return
	}
	o.At("spec").Kept(to)
}
