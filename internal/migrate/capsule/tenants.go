package capsule

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/migrate/draft"
	"croft.dev/croft/internal/migrate/kubernetes"
	"croft.dev/croft/internal/migrate/network"
	"croft.dev/croft/internal/migrate/source"
)

const tenantLabel = "capsule.clastix.io/tenant"

// NodeSelectors are the keys that Capsule's Tenants select nodes by.
func NodeSelectors(d *draft.Draft) map[string]bool {
	keys := map[string]bool{}
	for _, o := range d.Of(draft.CapsuleGroup, "Tenant") {
		for _, f := range o.At("spec", "nodeSelector").Fields() {
			keys[f.Key()] = true
		}
	}
	return keys
}

// Tenants become tenants.
func Tenants(d *draft.Draft) {
	for _, o := range d.Of(draft.CapsuleGroup, "Tenant") {
		name := draft.AsName(o.Name)
		source.Frame(o, "tenants."+name)
		t := d.AddTenant(name, o)
		spec := o.At("spec")
		namespaces(d, name, o, t)
		pool(d, name, spec.At("nodeSelector"), t)
		people(d, name, spec)
		quota(d, name, spec, t)
		policy(name, spec, &t.Spec.Policy.Allowances)
		hosts(name, spec.At("ingressOptions"), t)
		rest(name, spec)
	}
}

func namespaces(d *draft.Draft, name string, o *source.Object, t *draft.Tenant) {
	list := o.At("status", "namespaces")
	names := list.Texts()
	for _, n := range d.Of("", "Namespace") {
		if n.At("metadata", "labels", tenantLabel).Text() == o.Name {
			names = append(names, n.Name)
		}
	}
	names = draft.Distinct(names)
	slices.Sort(names)
	to := draft.TenantField(name, "namespaces")
	switch {
	case len(names) == 0:
		list.UnsetChanged(to, "no namespace of this tenant was read, from its status or by the label %s: it gets one of its own name", tenantLabel)
	case !slices.Equal(names, []string{name}):
		d.Has(t, name, names)
	}
	if list.Found() {
		list.Kept(to)
	}
}

func pool(d *draft.Draft, name string, selector source.Field, t *draft.Tenant) {
	for _, f := range selector.Fields() {
		if f.Key() == d.Key {
			d.Place(t, name, f, d.PoolNamed(f.Text()))
			continue
		}
		f.NotKept("croft selects nodes by %s alone: give the pool instances.requirements for it", d.Key)
	}
}

// people are the owners, and the subjects of additional bindings.
func people(d *draft.Draft, name string, spec source.Field) {
	prefix := kubernetes.GroupPrefix(d)
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
				if like, said := kubernetes.RoleOf(d, "ClusterRole", "", r); like != "" {
					role, why = like, said
				}
			}
		}
		kubernetes.Subject(d, name, owner, prefix, role, why)
		owner.At("clusterRoles").Changed(draft.TenantField(name, "access"), "%s", why)
		owner.At("proxySettings").NotKept("croft has no proxy: people reach the API server itself")
	}
	spec.At("owners").Kept(draft.TenantField(name, "access"))
	for _, b := range spec.At("additionalRoleBindings").Items() {
		role, why := kubernetes.RoleOf(d, "ClusterRole", "", b.At("clusterRoleName").Text())
		for _, s := range b.At("subjects").Items() {
			if s.At("kind").Text() == "ServiceAccount" {
				s.NotKept("croft's access is for people: bind the ServiceAccount by a RoleBinding of your own")
				continue
			}
			kubernetes.Subject(d, name, s, prefix, role, why)
		}
		if role == "" {
			b.At("clusterRoleName").NotKept("%s", why)
		} else {
			b.At("clusterRoleName").Changed(draft.TenantField(name, "access"), "%s", why)
		}
	}

}

// quota reads quotas and limits.
func quota(d *draft.Draft, name string, spec source.Field, t *draft.Tenant) {
	quotas := spec.At("resourceQuotas")
	perNamespace := quotas.At("scope").Text() == "Namespace"
	total := corev1.ResourceList{}
	for _, item := range quotas.At("items").Items() {
		kubernetes.Hard(d, name, item, total)
	}
	to := draft.TenantField(name, "quota")
	quotas.Kept(to)
	if perNamespace {
		n := int64(len(d.Namespaces(name)))
		for key, quantity := range total {
			quantity.Mul(n)
			total[key] = quantity
		}
		quotas.At("scope").Changed(to, "each namespace had this; a tenant's quota is for all its namespaces together, %d of them, and divided by what each uses", n)
	} else {
		quotas.At("scope").Kept(to)
	}
	if len(total) > 0 {
		t.Spec.Quota = total
	}
	for _, item := range spec.At("limitRanges", "items").Items() {
		kubernetes.ContainerLimits(d, name, item.At("limits"))
	}
	spec.At("limitRanges").Kept(draft.TenantField(name, "limits"))
	most := spec.At("namespaceOptions", "quota")
	most.Changed(draft.TenantField(name, "namespaces"), "the platform names them in croft.yaml; selfService.namespaces lets tenants ask for more, whose names begin with the tenant's")
}

// Policies are the network policies that Capsule writes into a tenant's
// namespaces.
func Policies(d *draft.Draft) map[string][]network.Policy {
	all := map[string][]network.Policy{}
	for _, o := range d.Of(draft.CapsuleGroup, "Tenant") {
		name := draft.AsName(o.Name)
		for _, item := range o.At("spec", "networkPolicies", "items").Items() {
			p := network.NewPolicy(o, item)
			p.Namespace = d.Namespaces(name)[0]
			if err := item.Into(&p.Spec); err != nil {
				item.NotKept("cannot be read: %v", err)
				continue
			}
			network.Defaulted(p.NetworkPolicy)
			network.Judged(d, name, p)
			all[name] = append(all[name], p)
		}
		o.At("spec", "networkPolicies").Kept(network.Wall)
	}
	return all
}
