package karpenter

import (
	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/adoption/migrate/capsule"
	"croft.dev/croft/internal/adoption/migrate/draft"
	"croft.dev/croft/internal/adoption/migrate/gatekeeper"
	"croft.dev/croft/internal/adoption/migrate/kubernetes"
	"croft.dev/croft/internal/adoption/migrate/source"
)

// isOutside reports whether a NodePool is left unchanged: no tenant is placed on it, and no
// label and taint tie its nodes to it. As a Pool it would evict the pods that run there. If its
// nodes accept every pod, it is the platform's own. If they are reserved for some pods, it is
// unknown for which, and that is a problem. A Provisioner cannot stay: current versions of
// Karpenter do not read it.
func isOutside(d *draft.Draft, o *source.Object) bool {
	n := d.FindNodes(o)
	if len(n.ListTies()) > 0 || listChosen(d)[n.Pool] {
		return false
	}
	switch at, value := n.Labels.At(d.Key), n.GetLabel(d.Key); {
	case n.IsDedicated():
		reportOutside(d, n, n.Taints, "its taints reserve the nodes for pods that tolerate them")
	case value != "":
		if !at.Found() {
			at = o.Root()
		}
		reportOutside(d, n, at, "its nodes have the label "+d.Key+"="+value)
	default:
		o.Root().MarkOther("its nodes take all pods, and no tenant runs on it: it belongs to the platform, and stays as it is outside of croft")
	}
	return true
}

// reportOutside reports a NodePool that seems to belong to a tenant.
func reportOutside(d *draft.Draft, n *draft.Nodes, at source.Field, reason string) {
	n.From.Root().MarkNotKept("%s, and no object of the input assigns a namespace to it: it stays as it is outside of croft", reason)
	d.ReportProblem(at, "%s, and no object of the input assigns a namespace to it: add the object that does, such as a mutator or a namespace's node-selector, "+
		"or give its nodes the label and the taint %s=%s; if it belongs to the platform, omit it from the input, or ignore this", reason, d.Key, n.Pool)
}

// listChosen returns the pools with tenants.
func listChosen(d *draft.Draft) map[string]bool {
	if d.Chosen != nil {
		return d.Chosen
	}
	d.Chosen = map[string]bool{}
	choose := func(pools ...string) {
		for _, p := range pools {
			d.Chosen[p] = true
		}
	}
	choose(gatekeeper.ListChosen(d)...)
	for _, o := range d.ValuesFiles() {
		for _, t := range o.At("tenants").Fields() {
			choose(draft.ToName(t.At("nodePool").Text()))
		}
		for _, p := range o.At("nodePools").Fields() {
			choose(draft.ToName(p.Key()))
		}
	}
	for _, selector := range listNodeSelectors(d) {
		choose(d.FindPools(draft.ListSelections(selector, source.Field{}))...)
	}
	for _, o := range d.List("", "Namespace") {
		for _, t := range kubernetes.ParseDefaultTolerations(o) {
			if t.Key == d.Key && t.Value != "" {
				choose(d.FindPool(t.Value))
			}
		}
	}
	for _, o := range d.List(v1alpha1.GroupVersion.Group, "TenantRules") {
		choose(o.At("spec", "pools").Texts()...)
	}
	return d.Chosen
}

// listNodeSelectors returns the nodeSelectors that are set on the pods of namespaces.
func listNodeSelectors(d *draft.Draft) []map[string]string {
	all := capsule.ListNodeSelectors(d)
	for _, o := range d.List("", "Namespace") {
		all = append(all, kubernetes.ParseNodeSelector(o))
	}
	return all
}
