package karpenter

import (
	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/migrate/draft"
	"croft.dev/croft/internal/migrate/gatekeeper"
	"croft.dev/croft/internal/migrate/kubernetes"
	"croft.dev/croft/internal/migrate/source"
)

// isOpen leaves a NodePool alone whose nodes take every pod, and that has no tenant: it
// is the platform's own, and as a Pool it would evict the platform's pods. A Provisioner
// cannot stay: no present Karpenter reads it.
func isOpen(d *draft.Draft, o *source.Object) bool {
	n := nodeOf(o)
	if len(n.ties()) > 0 {
		return false
	}
	for _, value := range []string{o.Name, draft.AsName(o.Name), n.labels.At(d.Key).Text()} {
		if chosen(d)[value] {
			return false
		}
	}
	o.Root().Other("its nodes are not tied to it by a label and a taint, and no tenant is put on it: it is the platform's own, and stays as it is outside of croft")
	return true
}

// chosen are the values of the key that tenants are put on pools by.
func chosen(d *draft.Draft) map[string]bool {
	if d.Choices != nil {
		return d.Choices
	}
	d.Choices = map[string]bool{}
	for _, m := range gatekeeper.Mutators(d) {
		d.Choices[m.Selector().At(d.Key).Text()] = true
		for _, t := range m.Tolerations() {
			if t.At("key").Text() == d.Key {
				d.Choices[t.At("value").Text()] = true
			}
		}
	}
	for _, o := range d.ValuesFiles() {
		for _, t := range o.At("tenants").Fields() {
			d.Choices[t.At("nodePool").Text()] = true
		}
		for _, p := range o.At("nodePools").Fields() {
			d.Choices[p.Key()] = true
		}
	}
	for _, o := range d.Of(draft.CapsuleGroup, "Tenant") {
		d.Choices[o.At("spec", "nodeSelector", d.Key).Text()] = true
	}
	for _, o := range d.Of("", "Namespace") {
		d.Choices[kubernetes.NodeSelectorOf(o)[d.Key]] = true
	}
	for _, o := range d.Of(v1alpha1.GroupVersion.Group, "TenantRules") {
		for _, p := range o.At("spec", "pools").Texts() {
			d.Choices[p] = true
		}
	}
	delete(d.Choices, "")
	return d.Choices
}
