package capsule

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/adoption/migrate/draft"
	"croft.dev/croft/internal/adoption/migrate/kubernetes"
	"croft.dev/croft/internal/adoption/migrate/network"
	"croft.dev/croft/internal/adoption/migrate/source"
)

const tenantLabel = "capsule.clastix.io/tenant"

// ListNodeSelectors returns the nodeSelectors that Capsule's Tenants set on pods, by their own
// field and by annotations of namespaces.
func ListNodeSelectors(d *draft.Draft) []map[string]string {
	var all []map[string]string
	for _, o := range d.List(draft.CapsuleGroup, "Tenant") {
		all = append(all, o.At("spec", "nodeSelector").TextMap())
		options := o.At("spec", "namespaceOptions")
		for _, metadata := range append(options.At("additionalMetadataList").Items(), options.At("additionalMetadata")) {
			all = append(all, kubernetes.ParseSelector(metadata.At("annotations", kubernetes.NodeSelectorAnnotation)))
		}
	}
	return all
}

// ReadTenants converts Capsule's Tenants into tenants.
func ReadTenants(d *draft.Draft) {
	for _, o := range d.List(draft.CapsuleGroup, "Tenant") {
		name := draft.ToName(o.Name)
		if other := d.Tenants[name]; other != nil && other.From.Group() == draft.CapsuleGroup {
			d.ReportLost(o.Root(), "would become tenant %s, as %s would: rename one of them", name, other.From.ID())
			continue
		}
		source.AccountMetadata(o, "tenants."+name)
		if name != o.Name {
			o.At("metadata", "name").MarkChanged("tenants."+name, "a tenant's name becomes a namespace and a domain: small letters, digits and '-'")
		}
		t := d.AddTenant(name, o)
		spec := o.At("spec")
		readNamespaces(d, name, o, t)
		readPool(d, name, spec.At("nodeSelector"), t)
		readPeople(d, name, spec)
		readQuota(d, name, spec, t)
		readPolicy(d, name, spec, &t.Spec.Policy.Allowances)
		readHosts(d, name, spec.At("ingressOptions"), t)
		readNamespaceOptions(d, name, spec.At("namespaceOptions"))
		readRules(d, spec.At("rules"))
		accountRest(name, spec)
		readCordon(d, name, o)
		readProtection(d, name, o)
		readMarks(d, o)
	}
}

func readNamespaces(d *draft.Draft, name string, o *source.Object, t *draft.Tenant) {
	list := o.At("status", "namespaces")
	names := list.Texts()
	for _, n := range d.List("", "Namespace") {
		if n.At("metadata", "labels", tenantLabel).Text() == o.Name {
			names = append(names, n.Name)
		}
	}
	names = draft.Distinct(names)
	slices.Sort(names)
	to := draft.TenantField(name, "namespaces")
	switch {
	case len(names) == 0:
		list.MarkUnsetChanged(to, "the input has no namespace of this tenant, in its status or with the label %s: it gets one with the tenant's name", tenantLabel)
	case !slices.Equal(names, []string{name}):
		d.SetNamespaces(t, name, names)
	}
	if list.Found() {
		list.MarkKept(to)
	}
}

// readPool reads the nodeSelector: one key selects the pool, and the pool's nodes must have the
// other labels.
func readPool(d *draft.Draft, name string, selector source.Field, t *draft.Tenant) {
	if pools := d.FindPools(draft.ListSelections(selector.TextMap(), selector)); len(pools) > 0 {
		at := selector
		if f := selector.At(d.Key); f.Found() {
			at = f
		}
		d.Place(t, name, at, pools...)
	}
	for _, f := range selector.Fields() {
		if f.Key() != d.Key {
			d.CheckSelection(t, name, f, f.Key(), f.Text())
		}
	}
}

// readPeople reads the owners, and the subjects of additional bindings.
func readPeople(d *draft.Draft, name string, spec source.Field) {
	prefix := kubernetes.FindGroupPrefix(d)
	for _, owner := range spec.At("owners").Items() {
		if owner.At("kind").Text() == "ServiceAccount" {
			owner.MarkNotKept("access contains only people and groups: give the ServiceAccount a RoleBinding to croft-operator in the tenant's namespaces")
			continue
		}
		role, why := v1alpha1.RoleOperator, "an owner becomes an operator, who runs workloads and cannot create namespaces: croft.yaml declares them"
		if roles := owner.At("clusterRoles").Texts(); len(roles) > 0 {
			for _, r := range roles {
				if r == "capsule-namespace-deleter" {
					continue
				}
				if like, reason := kubernetes.MatchRole(d, "ClusterRole", "", r); like != "" {
					role, why = like, reason
				}
			}
		}
		kubernetes.AddSubject(d, name, owner, prefix, role, why)
		owner.At("clusterRoles").MarkChanged(draft.TenantField(name, "access"), "%s", why)
		owner.At("proxySettings").MarkNotKept("croft's proxy lists cluster-scoped objects by the tenant's pools and allowances: docs/how-to/proxy.md")
		accountBindingMarks(owner)
	}
	for _, b := range spec.At("additionalRoleBindings").Items() {
		role, why := kubernetes.MatchRole(d, "ClusterRole", "", b.At("clusterRoleName").Text())
		for _, s := range b.At("subjects").Items() {
			if s.At("kind").Text() == "ServiceAccount" {
				s.MarkNotKept("access contains only people and groups: bind the ServiceAccount by a RoleBinding of your own")
				continue
			}
			kubernetes.AddSubject(d, name, s, prefix, role, why)
		}
		if role == "" {
			b.At("clusterRoleName").MarkNotKept("%s", why)
		} else {
			b.At("clusterRoleName").MarkChanged(draft.TenantField(name, "access"), "%s", why)
		}
		accountBindingMarks(b)
	}
}

// accountBindingMarks accounts for the labels and annotations of the RoleBindings that Capsule writes.
func accountBindingMarks(f source.Field) {
	for _, key := range []string{"labels", "annotations"} {
		f.At(key).MarkNotKept("croft's RoleBindings have croft's own labels and annotations")
	}
}

// readQuota reads quotas and limits.
func readQuota(d *draft.Draft, name string, spec source.Field, t *draft.Tenant) {
	quotas := spec.At("resourceQuotas")
	total := corev1.ResourceList{}
	for _, item := range quotas.At("items").Items() {
		kubernetes.AddQuota(d, name, item, total, reportLost)
	}
	to := draft.TenantField(name, "quota")
	if quotas.At("scope").Text() == "Namespace" {
		n := int64(len(d.Namespaces(name)))
		for key, quantity := range total {
			quantity.Mul(n)
			total[key] = quantity
		}
		quotas.At("scope").MarkChanged(to, "each namespace had this quota; a tenant's quota is for all its %d namespaces together, and croft divides it by usage", n)
	} else {
		quotas.At("scope").MarkKept(to)
	}
	if len(total) > 0 {
		t.Spec.Quota = total
	}
	for _, item := range spec.At("limitRanges", "items").Items() {
		kubernetes.ReadContainerLimits(d, name, item.At("limits"), reportLost)
	}
}

// reportLost reports a quota or a limit that croft.yaml cannot express. Capsule deletes its own
// objects with its Tenant.
func reportLost(d *draft.Draft, f source.Field, why, kind string) {
	d.ReportLost(f, "%s, and Capsule deletes its %s with its Tenant: create your own in the tenant's namespaces", why, kind)
}

// ReadPolicies returns the network policies that Capsule writes into tenants' namespaces, by
// tenant.
func ReadPolicies(d *draft.Draft) map[string][]network.Policy {
	all := map[string][]network.Policy{}
	for _, o := range d.List(draft.CapsuleGroup, "Tenant") {
		name := draft.ToName(o.Name)
		for _, item := range o.At("spec", "networkPolicies", "items").Items() {
			p := network.NewPolicy(o, item)
			p.Namespace = d.Namespaces(name)[0]
			if err := item.Decode(&p.Spec); err != nil {
				d.ReportLost(item, "cannot be read: %v", err)
				continue
			}
			network.SetDefaults(p.NetworkPolicy)
			network.ReportPolicy(d, name, p)
			if selector := p.Spec.PodSelector; len(selector.MatchLabels)+len(selector.MatchExpressions) > 0 {
				d.ReportLost(item, "selects only some pods, and Capsule deletes it with its Tenant: create a NetworkPolicy of your own in the tenant's namespaces")
			}
			all[name] = append(all[name], p)
		}
	}
	readCopiedPolicies(d, all)
	return all
}
