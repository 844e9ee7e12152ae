package hnc

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"croft.dev/croft/internal/adoption/migrate/copies"
	"croft.dev/croft/internal/adoption/migrate/draft"
	"croft.dev/croft/internal/adoption/migrate/kubernetes"
	"croft.dev/croft/internal/adoption/migrate/source"
)

// ReadTrees gives the namespaces of trees to tenants. A namespace without a tenant belongs to the tenant of its
// nearest ancestor, since HNC's trees express ownership. A tree without any tenant becomes one.
func ReadTrees(d *draft.Draft) {
	f := newForest(d)
	for _, root := range f.listRoots() {
		descendants := f.listDescendants(root)
		all := append([]string{root}, descendants...)
		if name := draft.ToName(root); len(listTenants(d, all)) == 0 && d.Tenants[name] == nil && !strings.HasPrefix(root, "kube-") {
			d.SetNamespaces(d.AddTenant(name, f.origins[descendants[0]]), name, all)
		}
		for _, namespace := range descendants {
			if name := d.FindTenant(f.parents[namespace]); name != "" && d.FindTenant(namespace) == "" {
				d.SetNamespaces(d.Tenants[name], name, append(slices.Clone(d.Namespaces(name)), namespace))
			}
		}
	}
	for _, o := range d.List(draft.HNCGroup, "HierarchyConfiguration") {
		readHierarchy(d, f, o)
	}
	for _, o := range d.List(draft.HNCGroup, "SubnamespaceAnchor") {
		readAnchor(d, f, o)
	}
	for _, o := range d.List(draft.HNCGroup, "HNCConfiguration") {
		readConfiguration(o)
	}
}

func readHierarchy(d *draft.Draft, f *forest, o *source.Object) {
	tenant := d.FindTenant(o.Namespace)
	if tenant == "" {
		o.Root().MarkOther("namespace %s belongs to no tenant: no object of the input assigns a pool to it", o.Namespace)
		return
	}
	to := draft.TenantField(tenant, "namespaces")
	source.AccountMetadata(o, to)
	accountParent(d, tenant, o.At("spec", "parent"))
	o.At("spec", "allowCascadingDeletion").MarkChanged(draft.TenantField(tenant, "deletion"), "croft deletes no namespaces by default: deletion: Retain keeps the namespaces of a deleted tenant")
	readManagedMetadata(d, f, o.Namespace, o)
}

// accountParent accounts for the parent of a namespace of a tenant.
func accountParent(d *draft.Draft, tenant string, parent source.Field) {
	to := draft.TenantField(tenant, "namespaces")
	switch other := d.FindTenant(parent.Text()); other {
	case tenant:
		parent.MarkChanged(to, "croft has no trees: the namespaces of tenant %s share its people, quota and network; give the namespaces of another team to a tenant of their own", tenant)
	case "":
		parent.MarkChanged(to, "the parent belongs to no tenant")
	default:
		parent.MarkChanged(to, "%s and %s are separate tenants, since other objects of the input assign pools to both namespaces: give the namespaces to one tenant if they belong to one team", other, tenant)
	}
}

func readAnchor(d *draft.Draft, f *forest, o *source.Object) {
	tenant := d.FindTenant(o.Name)
	if tenant == "" {
		o.Root().MarkOther("namespace %s belongs to no tenant: no object of the input assigns a pool to it", o.Name)
		return
	}
	to := draft.TenantField(tenant, "namespaces")
	source.AccountMetadata(o, to)
	o.At("metadata", "name").MarkChanged(to, "the platform names the namespaces in croft.yaml; selfService.namespaces lets tenants request more")
	accountParent(d, tenant, o.At("metadata", "namespace"))
	o.At("spec").MarkKept(to)
	readManagedMetadata(d, f, o.Name, o)
}

// readConfiguration accounts for the kinds that HNC copies.
func readConfiguration(o *source.Object) {
	const to = "objects"
	source.AccountMetadata(o, to)
	for _, r := range o.At("spec", "resources").Items() {
		if mode := r.At("mode").Text(); mode == modeIgnore || mode == modeRemove {
			r.MarkOther("HNC does not copy these objects")
		} else {
			r.MarkChanged(to, "croft copies no objects of a kind: objects contain the manifests")
		}
	}
}

// readManagedMetadata reads the labels and annotations that HNC sets on a namespace and its descendants.
func readManagedMetadata(d *draft.Draft, f *forest, root string, o *source.Object) {
	tenants := listTenants(d, append(f.listDescendants(root), root))
	for _, field := range []string{"labels", "annotations"} {
		for _, item := range o.At("spec", field).Items() {
			for _, tenant := range tenants {
				coverage := copies.ClassifyNamespaces(d, tenant, func(namespace string) bool { return f.isWithin(namespace, root) })
				readManaged(d, tenant, item, field, coverage == copies.SomeNamespaces)
			}
		}
	}
}

// readManaged reads a label or an annotation of all or, if some is set, only some namespaces of a tenant.
func readManaged(d *draft.Draft, tenant string, item source.Field, field string, some bool) {
	key, value := item.At("key").Text(), item.At("value")
	switch {
	case key == kubernetes.EnforceLabel:
		item.MarkKept(draft.TenantField(tenant, "policy.podSecurity"))
		kubernetes.SetLevel(d, tenant, value, some)
	case strings.HasPrefix(key, "scheduler.alpha.kubernetes.io/"):
		if lacksAnnotation(d, tenant, key, value.Text(), some) {
			d.ReportLost(item, "places pods, and the input lacks this annotation on namespaces of tenant %s: add their Namespace objects", tenant)
			return
		}
		item.MarkKeptAs(draft.TenantField(tenant, "pool"), "the namespaces have this annotation, too")
	case some:
		item.MarkNotKept("croft sets the same labels and annotations on all namespaces of a tenant: existing namespaces keep theirs; set them on new ones by a policy of yours")
	case !kubernetes.SetMetadata(d, tenant, key, value.Text(), field == "annotations"):
		item.MarkNotKept("croft does not set this on namespaces: existing namespaces keep theirs; set it on new ones by a policy of yours")
	default:
		item.MarkKept(draft.TenantField(tenant, "namespace."+field))
	}
}

// lacksAnnotation reports whether the input does not show an annotation on all or, if some is set, on any of a tenant's
// namespaces.
func lacksAnnotation(d *draft.Draft, tenant, key, value string, some bool) bool {
	has := func(namespace string) bool {
		o := d.Find("", "Namespace", namespace)
		return o != nil && o.At("metadata", "annotations", key).Text() == value
	}
	namespaces := d.Namespaces(tenant)
	if some {
		return !slices.ContainsFunc(namespaces, has)
	}
	return slices.ContainsFunc(namespaces, func(namespace string) bool { return !has(namespace) })
}

// ReadQuotas reads the quotas of subtrees. A tenant's quota is for all of its namespaces together, as the quota of a
// subtree is.
func ReadQuotas(d *draft.Draft) {
	f := newForest(d)
	for _, o := range d.List(draft.HNCGroup, "HierarchicalResourceQuota") {
		all := append(f.listDescendants(o.Namespace), o.Namespace)
		tenant := d.FindTenant(o.Namespace)
		if len(listTenants(d, all)) == 0 {
			o.Root().MarkOther("is in namespace %s, which belongs to no tenant", o.Namespace)
			continue
		}
		same := tenant != "" && len(d.Namespaces(tenant)) == len(all) &&
			copies.ClassifyNamespaces(d, tenant, func(namespace string) bool { return slices.Contains(all, namespace) }) == copies.EveryNamespace
		if !same {
			d.ReportLost(o.Root(), "limits the namespaces %s together, which are not the namespaces of one tenant: write the limits into the quota of their tenants", strings.Join(all, ", "))
			continue
		}
		source.AccountMetadata(o, draft.TenantField(tenant, "quota"))
		total := corev1.ResourceList{}
		maps.Copy(total, d.Tenants[tenant].Spec.Quota)
		kubernetes.AddQuota(d, tenant, o.At("spec"), total, func(d *draft.Draft, field source.Field, reason, _ string) {
			d.ReportLost(field, "%s", reason)
		})
		d.Tenants[tenant].Spec.Quota = total
	}
}
