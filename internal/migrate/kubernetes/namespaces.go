package kubernetes

import (
	"fmt"
	"strings"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/migrate/draft"
	"croft.dev/croft/internal/migrate/source"
)

const podSecurity = "pod-security.kubernetes.io/"

// Namespaces read the labels and annotations of tenants' namespaces.
func Namespaces(d *draft.Draft) {
	for _, o := range d.Of("", "Namespace") {
		name := d.TenantOf(o.Name)
		if name == "" {
			o.Root().Other("is no tenant's: nothing that was read says which pool its pods run on")
			continue
		}
		namespace(d, name, o)
	}
}

func namespace(d *draft.Draft, name string, o *source.Object) {
	t := d.Tenants[name]
	to := "tenants." + name
	source.Frame(o, to)
	o.At("spec").Other("the cluster's own")
	for _, l := range append(o.At("metadata", "labels").Fields(), o.At("metadata", "annotations").Fields()...) {
		switch key := l.Key(); {
		case key == podSecurity+"enforce":
			level(name, l, t)
		case strings.HasPrefix(key, podSecurity+"warn"), strings.HasPrefix(key, podSecurity+"enforce-version"):
			l.KeptAs(draft.TenantField(name, "policy.podSecurity"), "croft sets it itself, to the level that it enforces")
		case key == v1alpha1.CostCodeLabel:
			t.Spec.CostCode = l.Text()
			l.Kept(draft.TenantField(name, "costCode"))
		case draft.IsCostCode(key) && t.Spec.CostCode == "":
			t.Spec.CostCode = l.Text()
			l.Changed(draft.TenantField(name, "costCode"), "namespaces carry it as the label %s", v1alpha1.CostCodeLabel)
		case strings.HasPrefix(key, "croft.dev/"), key == v1alpha1.ManagedByLabel && l.Text() == v1alpha1.ManagedBy:
			l.Kept(to)
		case strings.HasPrefix(key, "kubectl.kubernetes.io/"), key == nodeSelectorAnnotation && l.Said():
		default:
			l.Other("stays on the namespace: croft adds its own labels, and takes none away")
		}
	}
	if !draft.Managed(o) && o.At("metadata", "annotations", v1alpha1.AdoptAnnotation).Text() != name {
		d.Standing = append(d.Standing, fmt.Sprintf("kubectl annotate namespace %s %s=%s", o.Name, v1alpha1.AdoptAnnotation, name))
	}
}

// nodeSelectorAnnotation gives the pods of a namespace a nodeSelector, where the
// API server's PodNodeSelector plugin is on.
const nodeSelectorAnnotation = "scheduler.alpha.kubernetes.io/node-selector"

// NodeSelectorOf is a namespace's default nodeSelector for its pods, by an annotation;
// empty if it has none.
func NodeSelectorOf(o *source.Object) map[string]string {
	selector := map[string]string{}
	for _, term := range strings.Split(o.At("metadata", "annotations", nodeSelectorAnnotation).Text(), ",") {
		if key, value, ok := strings.Cut(strings.TrimSpace(term), "="); ok {
			selector[key] = value
		}
	}
	return selector
}

// NodeSelectors reads which pool a namespace's own nodeSelector puts its pods on.
func NodeSelectors(d *draft.Draft) {
	for _, o := range d.Of("", "Namespace") {
		value, ok := NodeSelectorOf(o)[d.Key]
		if !ok {
			continue
		}
		name := d.TenantOf(o.Name)
		if name == "" {
			name = draft.AsName(o.Name)
		}
		at := o.At("metadata", "annotations", nodeSelectorAnnotation)
		d.Place(d.AddTenant(name, o), name, at, d.PoolNamed(value))
		at.Changed(draft.TenantField(name, "pool"), "croft adds the pool's toleration too, and refuses pods that ask for another pool; take the annotation away once croft stands")
	}
}

// level is the Pod Security level that the tenant's namespaces have.
func level(name string, l source.Field, t *draft.Tenant) {
	level := v1alpha1.PodSecurityLevel(l.Text())
	to := draft.TenantField(name, "policy.podSecurity")
	switch {
	case t.Spec.Policy.PodSecurity == "" && !t.Leveled:
		t.Leveled = true
		if level != v1alpha1.PodSecurityBaseline {
			t.Spec.Policy.PodSecurity = level
		}
	case t.Spec.Policy.PodSecurity != level && (t.Spec.Policy.PodSecurity != "" || level != v1alpha1.PodSecurityBaseline):
		l.Changed(to, "another namespace of the tenant has another level, which is now that of both")
		return
	}
	l.Kept(to)
}
