package capsule

import (
	"maps"
	"slices"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/adoption/migrate/draft"
	"croft.dev/croft/internal/adoption/migrate/source"
)

const (
	// cordonMark cordoned a Tenant in Capsule's API before v1beta2: as a label with the value enabled, and as an
	// annotation with the value true.
	cordonMark = "capsule.clastix.io/cordon"
	// cordonedLabel cordons one namespace.
	cordonedLabel = "projectcapsule.dev/cordoned"
	// protectMark protected a Tenant, with any value, before Capsule had preventDeletion.
	protectMark = "capsule.clastix.io/protected"
)

// readCordon freezes a cordoned tenant.
func readCordon(d *draft.Draft, name string, o *source.Object) {
	to := draft.TenantField(name, "frozen")
	if f := o.At("spec", "cordoned"); f.IsTrue() {
		freezeTenant(d, name, f)
	} else {
		f.MarkKept(to)
	}
	for _, field := range []string{"labels", "annotations"} {
		if mark := o.At("metadata", field, cordonMark); mark.IsTrue() || mark.Text() == "enabled" {
			freezeTenant(d, name, mark)
		} else {
			mark.MarkKept(to)
		}
	}
}

// readProtection protects a tenant that no user may delete in Capsule.
func readProtection(d *draft.Draft, name string, o *source.Object) {
	to := draft.TenantField(name, "protect")
	prevented := o.At("spec", "preventDeletion")
	prevented.MarkKept(to)
	protect := prevented.IsTrue()
	for _, field := range []string{"labels", "annotations"} {
		mark := o.At("metadata", field, protectMark)
		mark.MarkKept(to)
		protect = protect || mark.Found()
	}
	d.Tenants[name].Spec.Protect = protect
}

func freezeTenant(d *draft.Draft, name string, by source.Field) {
	d.Tenants[name].Spec.Frozen = &v1alpha1.Freeze{Reason: "cordoned in Capsule"}
	by.MarkChanged(draft.TenantField(name, "frozen"), "write the purpose into reason; the tenant's people may not scale workloads either, unless except lists scale")
}

// ReadCordonedNamespaces reads the label that cordons single namespaces. croft freezes a tenant as a whole.
func ReadCordonedNamespaces(d *draft.Draft) {
	cordoned := map[string][]source.Field{} // by tenant
	for _, o := range d.List("", "Namespace") {
		name, mark := d.FindTenant(o.Name), o.At("metadata", "labels", cordonedLabel)
		if name != "" && mark.IsTrue() {
			cordoned[name] = append(cordoned[name], mark)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(cordoned)) {
		marks := cordoned[name]
		for _, mark := range marks {
			if d.Tenants[name].Spec.Frozen != nil || len(marks) == len(d.Namespaces(name)) {
				freezeTenant(d, name, mark)
				continue
			}
			d.ReportLost(mark, "Capsule refuses changes in this namespace, and croft freezes a tenant with all of its namespaces: write frozen into tenants.%s, or move the namespace to a separate tenant", name)
		}
	}
}
