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

// NodeSelectors returns the nodeSelectors that Capsule's Tenants set on pods, by their own
// field and by annotations of namespaces.
func NodeSelectors(d *draft.Draft) []map[string]string {
	var all []map[string]string
	for _, o := range d.Of(draft.CapsuleGroup, "Tenant") {
		all = append(all, o.At("spec", "nodeSelector").TextMap())
		options := o.At("spec", "namespaceOptions")
		for _, metadata := range append(options.At("additionalMetadataList").Items(), options.At("additionalMetadata")) {
			all = append(all, kubernetes.ParseSelector(metadata.At("annotations", kubernetes.NodeSelectorAnnotation)))
		}
	}
	return all
}

// Tenants converts Capsule's Tenants into tenants.
func Tenants(d *draft.Draft) {
	for _, o := range d.Of(draft.CapsuleGroup, "Tenant") {
		name := draft.AsName(o.Name)
		if other := d.Tenants[name]; other != nil && other.From.Group() == draft.CapsuleGroup {
			d.Lost(o.Root(), "becomes tenant %s, as %s does: give one of them another name", name, other.From.ID())
			continue
		}
		source.Frame(o, "tenants."+name)
		if name != o.Name {
			o.At("metadata", "name").Changed("tenants."+name, "a tenant's name becomes a namespace and a domain: small letters, digits and '-'")
		}
		t := d.AddTenant(name, o)
		spec := o.At("spec")
		namespaces(d, name, o, t)
		pool(d, name, spec.At("nodeSelector"), t)
		people(d, name, spec)
		quota(d, name, spec, t)
		policy(d, name, spec, &t.Spec.Policy.Allowances)
		hosts(d, name, spec.At("ingressOptions"), t)
		namespaceOptions(d, name, spec.At("namespaceOptions"))
		rules(d, spec.At("rules"))
		rest(d, name, spec)
		marks(d, o)
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

// pool reads the nodeSelector: one key selects the pool, and the pool's nodes must have the
// other labels.
func pool(d *draft.Draft, name string, selector source.Field, t *draft.Tenant) {
	if pools := d.PoolsFor(draft.SelectedBy(selector.TextMap(), selector)); len(pools) > 0 {
		at := selector
		if f := selector.At(d.Key); f.Found() {
			at = f
		}
		d.Place(t, name, at, pools...)
	}
	for _, f := range selector.Fields() {
		if f.Key() != d.Key {
			d.Select(t, name, f, f.Key(), f.Text())
		}
	}
}

// people reads the owners, and the subjects of additional bindings.
func people(d *draft.Draft, name string, spec source.Field) {
	prefix := kubernetes.GroupPrefix(d)
	for _, owner := range spec.At("owners").Items() {
		if owner.At("kind").Text() == "ServiceAccount" {
			owner.NotKept("a tenant's access names people and groups: give the ServiceAccount a RoleBinding to croft-operator in the tenant's namespaces")
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
		owner.At("proxySettings").NotKept("croft's proxy lists cluster-scoped objects by the tenant's pools and allowances: docs/proxy.md")
		boundMarks(owner)
	}
	for _, b := range spec.At("additionalRoleBindings").Items() {
		role, why := kubernetes.RoleOf(d, "ClusterRole", "", b.At("clusterRoleName").Text())
		for _, s := range b.At("subjects").Items() {
			if s.At("kind").Text() == "ServiceAccount" {
				s.NotKept("a tenant's access names people and groups: bind the ServiceAccount by a RoleBinding of your own")
				continue
			}
			kubernetes.Subject(d, name, s, prefix, role, why)
		}
		if role == "" {
			b.At("clusterRoleName").NotKept("%s", why)
		} else {
			b.At("clusterRoleName").Changed(draft.TenantField(name, "access"), "%s", why)
		}
		boundMarks(b)
	}
}

// boundMarks accounts for the labels and annotations of the RoleBindings that Capsule writes.
func boundMarks(f source.Field) {
	for _, key := range []string{"labels", "annotations"} {
		f.At(key).NotKept("croft's RoleBindings have croft's own labels and annotations")
	}
}

// quota reads quotas and limits.
func quota(d *draft.Draft, name string, spec source.Field, t *draft.Tenant) {
	quotas := spec.At("resourceQuotas")
	total := corev1.ResourceList{}
	for _, item := range quotas.At("items").Items() {
		kubernetes.Hard(d, name, item, total, lost)
	}
	to := draft.TenantField(name, "quota")
	if quotas.At("scope").Text() == "Namespace" {
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
		kubernetes.ContainerLimits(d, name, item.At("limits"), lost)
	}
}

// lost reports a quota or a limit that croft.yaml cannot express. Capsule deletes its own
// objects with its Tenant.
func lost(d *draft.Draft, f source.Field, why, kind string) {
	d.Lost(f, "%s, and Capsule deletes its %s with its Tenant: write one of your own into the tenant's namespaces", why, kind)
}

// Policies returns the network policies that Capsule writes into tenants' namespaces, by
// tenant.
func Policies(d *draft.Draft) map[string][]network.Policy {
	all := map[string][]network.Policy{}
	for _, o := range d.Of(draft.CapsuleGroup, "Tenant") {
		name := draft.AsName(o.Name)
		for _, item := range o.At("spec", "networkPolicies", "items").Items() {
			p := network.NewPolicy(o, item)
			p.Namespace = d.Namespaces(name)[0]
			if err := item.Into(&p.Spec); err != nil {
				d.Lost(item, "cannot be read: %v", err)
				continue
			}
			network.Defaulted(p.NetworkPolicy)
			network.Judged(d, name, p)
			if selector := p.Spec.PodSelector; len(selector.MatchLabels)+len(selector.MatchExpressions) > 0 {
				d.Lost(item, "is about some pods, and Capsule deletes it with its Tenant: write a NetworkPolicy of your own into the tenant's namespaces")
			}
			all[name] = append(all[name], p)
		}
	}
	return all
}
