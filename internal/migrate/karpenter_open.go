package migrate

import (
	"croft.dev/croft/api/v1alpha1"
)

// isOpen leaves a NodePool alone whose nodes take every pod, and on which nobody
// puts a tenant: it is the platform's own, and as a Pool it would put the platform's
// pods out. A Provisioner cannot stay as it is: no Karpenter of today reads it.
func (d *draft) isOpen(o *Object) bool {
	n := nodeOf(o)
	if len(n.ties()) > 0 {
		return false
	}
	for _, value := range []string{o.Name, asName(o.Name), n.labels.At(d.key).Text()} {
		if d.chosen()[value] {
			return false
		}
	}
	o.Root().Other("its nodes are not tied to it by a label and a taint, and no tenant is put on it: it is the platform's own, and stays as it is outside of croft")
	return true
}

// chosen are the values of the key that tenants are put on pools by.
func (d *draft) chosen() map[string]bool {
	if d.choices != nil {
		return d.choices
	}
	d.choices = map[string]bool{}
	for _, m := range d.mutators() {
		d.choices[m.selector().At(d.key).Text()] = true
		for _, t := range m.tolerations() {
			if t.At("key").Text() == d.key {
				d.choices[t.At("value").Text()] = true
			}
		}
	}
	for _, o := range d.valuesFiles() {
		for _, t := range o.At("tenants").Fields() {
			d.choices[t.At("nodePool").Text()] = true
		}
		for _, p := range o.At("nodePools").Fields() {
			d.choices[p.Key()] = true
		}
	}
	for _, o := range d.of(capsuleGroup, "Tenant") {
		d.choices[o.At("spec", "nodeSelector", d.key).Text()] = true
	}
	for _, o := range d.of("", "Namespace") {
		d.choices[nodeSelectorOf(o)[d.key]] = true
	}
	for _, o := range d.of(v1alpha1.GroupVersion.Group, "TenantRules") {
		for _, p := range o.At("spec", "pools").Texts() {
			d.choices[p] = true
		}
	}
	delete(d.choices, "")
	return d.choices
}
