package declared

import (
	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/adoption/migrate/draft"
	"croft.dev/croft/internal/adoption/migrate/source"
)

// ReadObjects copies croft's API objects. The objects that croft made from them are then not
// migrated.
func ReadObjects(d *draft.Draft) {
	group := v1alpha1.GroupVersion.Group
	for _, o := range d.List(group, "Platform") {
		readSpec(o, "platform", &d.Platform)
	}
	for _, o := range d.List(group, "Pool") {
		p := &draft.Pool{From: o, Values: []string{o.Name}}
		readSpec(o, "pools."+o.Name, &p.Spec)
		d.Pools[o.Name] = p
	}
	for _, o := range d.List(group, "Tenant") {
		t := d.AddTenant(o.Name, o)
		readSpec(o, "tenants."+o.Name, &t.Spec)
		if len(t.Spec.Namespaces) > 0 {
			d.SetNamespaces(t, o.Name, t.Spec.Namespaces)
		}
	}
	for _, o := range d.List(group, "SecondaryNetwork") {
		var spec v1alpha1.SecondaryNetworkSpec
		readSpec(o, "secondaryNetworks."+o.Name, &spec)
		d.Secondary[o.Name] = spec
	}
	if len(d.List(group, "Platform")) == 0 {
		return
	}
	for _, o := range d.Objects {
		if !o.Skip && !o.IsAccounted() && draft.IsManaged(o) {
			o.Root().MarkOther("croft created it from the declared objects")
			o.Skip = true
		}
	}
}

func readSpec(o *source.Object, to string, spec any) {
	source.AccountMetadata(o, to)
	if err := o.At("spec").Decode(spec); err != nil {
		o.At("spec").MarkNotKept("cannot be read: %v", err)
		return
	}
	o.At("spec").MarkKept(to)
}
