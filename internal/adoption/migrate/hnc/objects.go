package hnc

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"croft.dev/croft/internal/adoption/migrate/copies"
	"croft.dev/croft/internal/adoption/migrate/draft"
	"croft.dev/croft/internal/adoption/migrate/source"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/declare/wording"
)

// ReadObjects writes the ConfigMaps, LimitRanges and RoleBindings that HNC copies into the objects of tenants. It runs
// before the readers of LimitRanges and RoleBindings in tenants' namespaces.
func ReadObjects(d *draft.Draft) {
	skipQuotas(d)
	f := newForest(d)
	for _, p := range listPropagated(d, f) {
		switch kind := p.object.Kind; {
		case estate.ExplainRefusedKind(p.object.APIVersion, kind) != "":
		case kind == "ConfigMap":
			declareObject(d, p, "", "")
		case kind == "LimitRange":
			if !limitsContainers(p.object) && declareObject(d, p, "", "") {
				for _, o := range append(slices.Clone(p.copied), p.object) {
					o.Skip = true
				}
			}
		case kind == "RoleBinding":
			readBinding(d, p)
		}
	}
}

// ReadOthers writes the NetworkPolicies that HNC copies into the objects of tenants, and reports objects of other
// kinds. It runs after the reader of network policies, since the limits of NetworkPolicies depend on it.
func ReadOthers(d *draft.Draft) {
	f := newForest(d)
	for _, p := range listPropagated(d, f) {
		switch o := p.object; {
		case o.Group() == "" && o.Kind == "ResourceQuota":
			reportQuota(d, p)
		case estate.ExplainRefusedKind(o.APIVersion, o.Kind) != "":
			reportOther(d, p)
		case o.Kind == "NetworkPolicy" && selectsSomePods(o):
			declareObject(d, p, "", "")
		}
	}
}

// selectsSomePods reports whether a NetworkPolicy selects only some pods. croft's wall replaces the others, which package
// network reports.
func selectsSomePods(o *source.Object) bool {
	pods := o.At("spec", "podSelector")
	return len(pods.At("matchLabels").Fields())+len(pods.At("matchExpressions").Items()) > 0
}

// reportOther reports an object of a kind that croft.yaml cannot contain.
func reportOther(d *draft.Draft, p propagated) {
	every, some := p.listTenants(d)
	tenants, why := slices.Concat(every, some), estate.ExplainRefusedKind(p.object.APIVersion, p.object.Kind)
	switch {
	case len(tenants) == 0:
		return
	case p.object.Kind == "Role" && p.object.Root().HasOutcome():
		return // a role of croft replaces it
	case p.object.Kind == "Secret" && len(every) > 0:
		declareSecret(d, p, every, some)
		return
	case p.object.Kind == "Role":
		why = "write its rules into platform.roles, and the people into access"
	}
	p.object.Root().MarkNotKept("HNC copies it into namespaces of %s: %s; the copies stay, and new namespaces do not get one", wording.FormatFirst(tenants, most), why)
	p.accountCopies()
}

// declareSecret writes a Secret into the secrets of the tenants of which every namespace has it.
func declareSecret(d *draft.Draft, p propagated, every, some []string) {
	root := p.object.Root()
	to, name, why := copies.DeclareSecret(d, every, false, copies.Secret{
		Name: p.object.Name, Type: corev1.SecretType(p.object.At("type").Text()), Origin: p.from + "/" + p.object.Name, Prefix: p.from,
	})
	for _, field := range to {
		root.MarkChanged(field, "%s", copies.FormatSecretStep(name))
	}
	if why != "" {
		root.MarkNotKept("HNC copies it into namespaces of %s: %s; the copies stay, and new namespaces do not get one", wording.FormatFirst(every, most), why)
	}
	if len(some) > 0 {
		root.MarkNotKept("HNC copies it into only some namespaces of %s, or into namespaces that the input lacks, and croft writes copies into all namespaces of a tenant: the copies stay, and new namespaces do not get one",
			wording.FormatFirst(some, most))
	}
	p.accountCopies()
}

// most is the maximum number of tenants that a message names.
const most = 5

// skipQuotas accounts for the ResourceQuotas that HNC writes for a HierarchicalResourceQuota: each of them has the limits
// of the whole subtree.
func skipQuotas(d *draft.Draft) {
	for _, o := range d.List("", "ResourceQuota") {
		if o.At("metadata", "labels", quotaLabel).Found() {
			o.Root().MarkOther("HNC wrote it for a HierarchicalResourceQuota: delete it with HNC")
			o.Skip = true
		}
	}
}

// limitsContainers reports whether a LimitRange limits only containers: the limits of a tenant replace it.
func limitsContainers(o *source.Object) bool {
	return !slices.ContainsFunc(o.At("spec", "limits").Items(), func(item source.Field) bool {
		return item.At("type").Text() != string(corev1.LimitTypeContainer) || item.At("maxLimitRequestRatio").Found()
	})
}

// listTenants returns the tenants of which every namespace gets a copy or contains the original object, and the
// tenants of which only some do.
func (p propagated) listTenants(d *draft.Draft) (every, some []string) {
	for _, name := range slices.Sorted(maps.Keys(d.Tenants)) {
		copied, unknown := false, false
		coverage := copies.ClassifyNamespaces(d, name, func(namespace string) bool {
			selected, known := p.selects(namespace)
			copied, unknown = copied || selected, unknown || !known
			return selected || namespace == p.from
		})
		switch {
		case !copied && !unknown:
		case coverage == copies.EveryNamespace:
			every = append(every, name)
		default:
			some = append(some, name)
		}
	}
	return every, some
}

// declareObject writes an object into the objects of the tenants of which every namespace has it. role is the ClusterRole of a
// RoleBinding, and difference its difference to the role before. It reports whether croft.yaml has the object
// for all tenants with copies.
func declareObject(d *draft.Draft, p propagated, role, difference string) bool {
	every, some := p.listTenants(d)
	root := p.object.Root()
	if len(some) > 0 {
		root.MarkNotKept("HNC copies it into only some namespaces of %s, or into namespaces that the input lacks, and croft writes objects into all namespaces of a tenant: the copies stay, and new namespaces do not get one",
			wording.FormatFirst(some, most))
	}
	if len(every) == 0 {
		if len(some) > 0 {
			p.accountCopies()
		}
		return false
	}
	manifest := copies.BuildManifest(p.object.Content)
	if p.object.Kind == "RoleBinding" {
		copies.BindAccounts(manifest, role)
	}
	text, err := copies.Marshal(manifest)
	if err != nil {
		root.MarkNotKept("cannot be read: %v", err)
		return false
	}
	texts := map[string]string{}
	for _, name := range every {
		texts[name] = estate.EscapeParameters(text)
	}
	declared := copies.Declare(d, texts, false)
	for _, field := range declared.To {
		root.MarkChanged(field, "croft's operator writes it into all namespaces of the tenant, and reverts changes there: remove HNC first, and change the object in croft.yaml")
	}
	if len(declared.Refused) > 0 {
		root.MarkNotKept("%s; the copies stay, and new namespaces do not get one", declared.FormatRefused())
	}
	if p.object.Kind == "RoleBinding" {
		for _, o := range append(slices.Clone(p.copied), p.object) {
			copies.ReportRole(o.Root(), declared.To, role, difference)
		}
	} else {
		p.accountCopies()
	}
	return len(some) == 0 && len(declared.Refused) == 0
}

// accountCopies accounts for the copies, which the object that they were copied from describes.
func (p propagated) accountCopies() {
	for _, o := range p.copied {
		if o != p.object {
			o.Root().MarkOther("HNC's copy of the object in namespace %s", p.from)
		}
	}
}

// readBinding gives the people of a RoleBinding access, and writes its service accounts into a RoleBinding of croft.yaml.
func readBinding(d *draft.Draft, p propagated) {
	every, _ := p.listTenants(d)
	if len(every) == 0 {
		return // the reader of RoleBindings accounts for it
	}
	binding := p.object.Root()
	role, difference := copies.ReadPeople(d, binding, every, func(text, _ string) string { return text })
	if copies.HasAccounts(binding) {
		declareObject(d, p, role, difference)
	}
}

// reportQuota reports a ResourceQuota without copies in the input: the tenant's quota is the sum of the quotas of its
// namespaces.
func reportQuota(d *draft.Draft, p propagated) {
	every, some := p.listTenants(d)
	for _, name := range slices.Concat(every, some) {
		missing := slices.DeleteFunc(slices.Clone(d.Namespaces(name)), func(namespace string) bool {
			selected, _ := p.selects(namespace)
			return !selected || slices.ContainsFunc(p.copied, func(o *source.Object) bool { return o.Namespace == namespace })
		})
		if len(missing) > 0 {
			p.object.At("spec", "hard").MarkChanged(draft.TenantField(name, "quota"), "HNC copies it into %s, and the input lacks these copies, so that the quota of the tenant is too small: add them, or raise the quota", strings.Join(missing, ", "))
		}
	}
}
