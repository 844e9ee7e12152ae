package migrate

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"croft.dev/croft/api/v1alpha1"
)

const (
	capsuleGroup = "capsule.clastix.io"
	capsuleLabel = "capsule.clastix.io/tenant"
)

// capsuleSelectors are the keys that Capsule's Tenants select nodes by.
func (d *draft) capsuleSelectors() map[string]bool {
	keys := map[string]bool{}
	for _, o := range d.of(capsuleGroup, "Tenant") {
		for _, f := range o.At("spec", "nodeSelector").Fields() {
			keys[f.Key()] = true
		}
	}
	return keys
}

// capsuleTenants become tenants.
func (d *draft) capsuleTenants() {
	for _, o := range d.of(capsuleGroup, "Tenant") {
		name := asName(o.Name)
		frame(o, "tenants."+name)
		t := d.addTenant(name, o)
		spec := o.At("spec")
		d.capsuleNamespaces(name, o, t)
		d.capsulePool(name, spec.At("nodeSelector"), t)
		d.capsulePeople(name, spec)
		d.capsuleQuota(name, spec, t)
		capsulePolicy(name, spec, &t.spec.Policy.Allowances)
		d.capsuleHosts(name, spec.At("ingressOptions"), t)
		capsuleRest(name, spec)
	}
}

func (d *draft) capsuleNamespaces(name string, o *Object, t *tenant) {
	list := o.At("status", "namespaces")
	names := list.Texts()
	for _, n := range d.of("", "Namespace") {
		if n.At("metadata", "labels", capsuleLabel).Text() == o.Name {
			names = append(names, n.Name)
		}
	}
	names = distinct(names)
	slices.Sort(names)
	to := tenantField(name, "namespaces")
	switch {
	case len(names) == 0:
		list.UnsetChanged(to, "no namespace of this tenant was read, from its status or by the label %s: it gets one of its own name", capsuleLabel)
	case !slices.Equal(names, []string{name}):
		d.has(t, name, names)
	}
	if list.Found() {
		list.Kept(to)
	}
}

func (d *draft) capsulePool(name string, selector Field, t *tenant) {
	for _, f := range selector.Fields() {
		if f.Key() == d.key {
			d.place(t, name, f, d.poolNamed(f.Text()))
			continue
		}
		f.NotKept("croft selects nodes by %s alone: give the pool instances.requirements for it", d.key)
	}
}

// capsulePeople are the owners, and whoever additional bindings name.
func (d *draft) capsulePeople(name string, spec Field) {
	prefix := d.groupPrefix()
	for _, owner := range spec.At("owners").Items() {
		if owner.At("kind").Text() == "ServiceAccount" {
			owner.NotKept("croft's access is for people: give the ServiceAccount a RoleBinding to croft-operator in the tenant's namespaces")
			continue
		}
		role, why := v1alpha1.RoleOperator, "an owner becomes operator, who runs workloads and makes no namespaces: the platform names these in croft.yaml"
		if roles := owner.At("clusterRoles").Texts(); len(roles) > 0 {
			for _, r := range roles {
				if r == "capsule-namespace-deleter" {
					continue
				}
				if like, said := d.roleOf("ClusterRole", "", r); like != "" {
					role, why = like, said
				}
			}
		}
		d.subject(name, owner, prefix, role, why)
		owner.At("clusterRoles").Changed(tenantField(name, "access"), "%s", why)
		owner.At("proxySettings").NotKept("croft has no proxy: people reach the API server itself")
	}
	spec.At("owners").Kept(tenantField(name, "access"))
	for _, b := range spec.At("additionalRoleBindings").Items() {
		role, why := d.roleOf("ClusterRole", "", b.At("clusterRoleName").Text())
		for _, s := range b.At("subjects").Items() {
			if s.At("kind").Text() == "ServiceAccount" {
				s.NotKept("croft's access is for people: bind the ServiceAccount by a RoleBinding of your own")
				continue
			}
			d.subject(name, s, prefix, role, why)
		}
		if role == "" {
			b.At("clusterRoleName").NotKept("%s", why)
		} else {
			b.At("clusterRoleName").Changed(tenantField(name, "access"), "%s", why)
		}
	}

}

// capsuleQuota reads quotas and limits.
func (d *draft) capsuleQuota(name string, spec Field, t *tenant) {
	quotas := spec.At("resourceQuotas")
	perNamespace := quotas.At("scope").Text() == "Namespace"
	total := corev1.ResourceList{}
	for _, item := range quotas.At("items").Items() {
		d.hard(name, item, total)
	}
	to := tenantField(name, "quota")
	quotas.Kept(to)
	if perNamespace {
		n := int64(len(d.namespaces(name)))
		for key, quantity := range total {
			quantity.Mul(n)
			total[key] = quantity
		}
		quotas.At("scope").Changed(to, "each namespace had this; a tenant's quota is for all its namespaces together, %d of them, and divided by what each uses", n)
	} else {
		quotas.At("scope").Kept(to)
	}
	if len(total) > 0 {
		t.spec.Quota = total
	}
	for _, item := range spec.At("limitRanges", "items").Items() {
		d.containerLimits(name, item.At("limits"))
	}
	spec.At("limitRanges").Kept(tenantField(name, "limits"))
	most := spec.At("namespaceOptions", "quota")
	most.Changed(tenantField(name, "namespaces"), "tenants make no namespaces themselves: the platform names them in croft.yaml")
}

// capsulePolicies are the network policies that Capsule writes into a tenant's
// namespaces.
func (d *draft) capsulePolicies() map[string][]policy {
	all := map[string][]policy{}
	for _, o := range d.of(capsuleGroup, "Tenant") {
		name := asName(o.Name)
		for _, item := range o.At("spec", "networkPolicies", "items").Items() {
			p := policy{&networkingv1.NetworkPolicy{}, o, item}
			p.Namespace = d.namespaces(name)[0]
			if err := item.Into(&p.Spec); err != nil {
				item.NotKept("cannot be read: %v", err)
				continue
			}
			defaulted(p.NetworkPolicy)
			d.judged(name, p)
			all[name] = append(all[name], p)
		}
		o.At("spec", "networkPolicies").Kept(wall)
	}
	return all
}
