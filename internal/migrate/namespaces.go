package migrate

import (
	"fmt"
	"strings"

	"croft.dev/croft/api/v1alpha1"
)

const podSecurity = "pod-security.kubernetes.io/"

// namespaceObjects read what the namespaces of tenants are marked with.
func (d *draft) namespaceObjects() {
	for _, o := range d.of("", "Namespace") {
		name := d.tenantOf(o.Name)
		if name == "" {
			o.Root().Other("is no tenant's: nothing that was read says which pool its pods run on")
			continue
		}
		d.namespace(name, o)
	}
}

func (d *draft) namespace(name string, o *Object) {
	t := d.tenants[name]
	to := "tenants." + name
	frame(o, to)
	o.At("spec").Other("the cluster's own")
	for _, l := range append(o.At("metadata", "labels").Fields(), o.At("metadata", "annotations").Fields()...) {
		switch key := l.Key(); {
		case key == podSecurity+"enforce":
			d.level(name, l, t)
		case strings.HasPrefix(key, podSecurity+"warn"), strings.HasPrefix(key, podSecurity+"enforce-version"):
			l.KeptAs(tenantField(name, "policy.podSecurity"), "croft sets it itself, to the level that it enforces")
		case key == v1alpha1.CostCodeLabel:
			t.spec.CostCode = l.Text()
			l.Kept(tenantField(name, "costCode"))
		case isCostCode(key) && t.spec.CostCode == "":
			t.spec.CostCode = l.Text()
			l.Changed(tenantField(name, "costCode"), "namespaces carry it as the label %s", v1alpha1.CostCodeLabel)
		case strings.HasPrefix(key, "croft.dev/"), key == v1alpha1.ManagedByLabel && l.Text() == v1alpha1.ManagedBy:
			l.Kept(to)
		case strings.HasPrefix(key, "kubectl.kubernetes.io/"), key == nodeSelectorAnnotation && l.said():
		default:
			l.Other("stays on the namespace: croft adds its own labels, and takes none away")
		}
	}
	if !managed(o) && o.At("metadata", "annotations", v1alpha1.AdoptAnnotation).Text() != name {
		d.standing = append(d.standing, fmt.Sprintf("kubectl annotate namespace %s %s=%s", o.Name, v1alpha1.AdoptAnnotation, name))
	}
}

// nodeSelectorAnnotation gives the pods of a namespace a nodeSelector, where the
// API server's PodNodeSelector plugin is on.
const nodeSelectorAnnotation = "scheduler.alpha.kubernetes.io/node-selector"

func nodeSelectorOf(o *Object) map[string]string {
	selector := map[string]string{}
	for _, term := range strings.Split(o.At("metadata", "annotations", nodeSelectorAnnotation).Text(), ",") {
		if key, value, ok := strings.Cut(strings.TrimSpace(term), "="); ok {
			selector[key] = value
		}
	}
	return selector
}

// selecting reads which pool a namespace's own nodeSelector puts its pods on.
func (d *draft) selecting() {
	for _, o := range d.of("", "Namespace") {
		value, ok := nodeSelectorOf(o)[d.key]
		if !ok {
			continue
		}
		name := d.tenantOf(o.Name)
		if name == "" {
			name = asName(o.Name)
		}
		at := o.At("metadata", "annotations", nodeSelectorAnnotation)
		d.place(d.addTenant(name, o), name, at, d.poolNamed(value))
		at.Changed(tenantField(name, "pool"), "croft adds the pool's toleration too, and refuses pods that ask for another pool; take the annotation away once croft stands")
	}
}

// level is the Pod Security level that the tenant's namespaces have.
func (d *draft) level(name string, l Field, t *tenant) {
	level := v1alpha1.PodSecurityLevel(l.Text())
	to := tenantField(name, "policy.podSecurity")
	switch {
	case t.spec.Policy.PodSecurity == "" && !t.leveled:
		t.leveled = true
		if level != v1alpha1.PodSecurityBaseline {
			t.spec.Policy.PodSecurity = level
		}
	case t.spec.Policy.PodSecurity != level && (t.spec.Policy.PodSecurity != "" || level != v1alpha1.PodSecurityBaseline):
		l.Changed(to, "another namespace of the tenant has another level, which is now that of both")
		return
	}
	l.Kept(to)
}
