package karpenter

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/adoption/migrate/draft"
	"croft.dev/croft/internal/adoption/migrate/gatekeeper"
	"croft.dev/croft/internal/adoption/migrate/kubernetes"
	"croft.dev/croft/internal/adoption/migrate/source"
)

// ChooseKey sets the draft's key to the one that ties most nodes to their pools.
func ChooseKey(d *draft.Draft) {
	votes := countVotes(d)
	keys := slices.SortedFunc(maps.Keys(votes), func(a, b string) int {
		return cmp.Or(cmp.Compare(votes[b], votes[a]), cmp.Compare(a, b))
	})
	keys = slices.DeleteFunc(keys, func(key string) bool {
		return key == "" || strings.HasPrefix(key, "karpenter.") || isWellKnown(key)
	})
	d.Key = cmp.Or(d.Platform.NodePoolKey, v1alpha1.DefaultNodePoolKey)
	if len(keys) == 0 || len(d.List(v1alpha1.GroupVersion.Group, "Platform")) > 0 {
		return
	}
	d.Key = keys[0]
	if d.Key != v1alpha1.DefaultNodePoolKey {
		d.Platform.NodePoolKey = d.Key
		if !strings.Contains(d.Key, "node-restriction.kubernetes.io/") {
			d.AddNote("platform.nodePoolKey stays %s, so that running nodes and existing manifests stay valid; a kubelet can set this label on its own node, "+
				"unlike labels below node-restriction.kubernetes.io/ (croft's default is %s)", d.Key, v1alpha1.DefaultNodePoolKey)
		}
	}
	for _, key := range keys[1:] {
		if votes[key] >= tied {
			d.AddNote("most pools have the label and taint %s, and some have %s: croft uses the first for all", d.Key, key)
		}
	}
}

// isWellKnown reports whether Kubernetes or a cloud defines a label.
func isWellKnown(key string) bool {
	return slices.ContainsFunc([]string{
		"kubernetes.io/", "node.kubernetes.io/", "beta.kubernetes.io/", "topology.", "failure-domain.beta.kubernetes.io/",
	}, func(prefix string) bool { return strings.HasPrefix(key, prefix) })
}

// tied is the weight of a label and a taint of the same key and value.
const tied = 3

// countVotes returns, for each key, the weight of the evidence that it ties nodes to pools. Labels
// and taints weigh most, then nodeSelectors with the key. Labels with the name of the pool
// weigh more.
func countVotes(d *draft.Draft) map[string]int {
	votes := map[string]int{}
	for _, n := range d.ListNodes() {
		for key := range n.ListTies() {
			votes[key] += tied
		}
		for _, t := range n.Taints.Items() {
			if key := t.At("key").Text(); t.At("value").Text() != "" && strings.Contains(key, "pool") {
				votes[key]++
			}
		}
	}
	for _, m := range gatekeeper.ListMutators(d) {
		for key, weight := range m.ListKeys() {
			votes[key] += weight
		}
	}
	for _, selector := range listNodeSelectors(d) {
		for key, value := range selector {
			votes[key] += 1 + identifyPool(d, key, value)
			if strings.Contains(key, "pool") {
				votes[key]++
			}
		}
	}
	for _, o := range d.List("", "Namespace") {
		for _, t := range kubernetes.ParseDefaultTolerations(o) {
			if t.Value != "" {
				votes[t.Key]++
			}
		}
	}
	for _, n := range d.ListNodes() {
		for _, l := range n.Labels.Fields() {
			if votes[l.Key()] > 0 && l.Text() == n.From.Name {
				votes[l.Key()]++
			}
		}
	}
	return votes
}

// identifyPool returns a weight for a value that identifies one pool: by its name, or by a
// label that no other pool has.
func identifyPool(d *draft.Draft, key, value string) int {
	labelled := 0
	for _, n := range d.ListNodes() {
		if n.From.Name == value {
			return 2 * tied
		}
		if n.GetLabel(key) == value {
			labelled++
		}
	}
	if slices.ContainsFunc(d.ValuesFiles(), func(o *source.Object) bool { return o.At("nodePools", value).Found() }) {
		return 2 * tied
	}
	if labelled == 1 {
		return tied
	}
	return 0
}

// accountTies accounts for the labels and taints of a pool's nodes.
func accountTies(d *draft.Draft, name string, o *source.Object, p *draft.Pool) {
	n := d.FindNodes(o)
	ties := n.ListTies()
	puts := slices.ContainsFunc(n.Taints.Items(), func(t source.Field) bool { return isEvicting(d, t) })
	for _, t := range n.Taints.Items() {
		accountTaint(d, name, t, ties, p, puts)
	}
	n.Taints.MarkKept("platform.nodePoolKey")
	for _, l := range n.Labels.Fields() {
		accountLabel(d, name, l, p)
	}
	p.Values = append(p.Values, name)
	if value, tied := ties[d.Key]; tied {
		if value != name {
			p.Values = append(p.Values, value)
			n.Labels.At(d.Key).MarkChanged("platform.nodePoolKey", "nodes will have the value %s, the pool's name, and no longer %s: change selectors that use it", name, value)
		}
		return
	}
	n.Taints.MarkUnsetChanged("platform.nodePoolKey", "this pool's nodes lack the label or the taint %s: croft adds both, "+
		"so only pods of tenants of this pool run here, and all others are evicted; remove pool %s from croft.yaml if the platform's pods run here", d.Key, name)
}

// isEvicting reports whether a taint has the key and evicts pods that bypassed the scheduler.
func isEvicting(d *draft.Draft, t source.Field) bool {
	return t.At("key").Text() == d.Key && t.At("effect").Text() == string(corev1.TaintEffectNoExecute)
}

// accountTaint accounts for one taint of a pool's nodes. At most one of the taints that tie the nodes
// evicts pods.
func accountTaint(d *draft.Draft, name string, t source.Field, ties map[string]string, p *draft.Pool, puts bool) {
	key, value := t.At("key").Text(), t.At("value").Text()
	switch {
	case key == d.Key && puts && value == name:
		t.MarkKept("platform.nodePoolKey")
	case key == d.Key:
		t.MarkKept("platform.nodePoolKey")
		t.At("effect").MarkChanged("platform.nodePoolKey", "croft taints its nodes NoSchedule and NoExecute: a pod that bypassed the scheduler is evicted")
		p.Values = append(p.Values, value)
	case ties[key] != "" || listChosen(d)[name]:
		// The pods that tolerate it are the pods of the pool's tenants.
		t.MarkChanged("platform.nodePoolKey", "the taint %s replaces it, and croft lets the tenants' pods tolerate that", d.Key)
	default:
		t.MarkNotKept("a Pool's nodes have only the taint of their pool, which only pods of its tenants tolerate")
		d.ReportProblem(t, "a Pool's nodes have only the taint %s, and the input has no tenant on pool %s for the pods that tolerate this taint: "+
			"add the tenant to the input, remove the taint, or keep a NodePool of your own outside of croft", d.Key, name)
	}
}

// accountLabel accounts for a label of nodes. A label for which croft has no field becomes a
// requirement, which Karpenter sets on the nodes as a label.
func accountLabel(d *draft.Draft, name string, l source.Field, p *draft.Pool) {
	key, value := l.Key(), l.Text()
	switch {
	case key == d.Key:
		l.MarkKept("platform.nodePoolKey")
	case key == v1alpha1.CostCodeLabel:
		p.Spec.CostCode = value
		l.MarkKept(draft.PoolField(name, "costCode"))
	case draft.IsCostCode(key) && (p.Spec.CostCode == "" || p.Spec.CostCode == value):
		p.Spec.CostCode = value
		l.MarkChanged(draft.PoolField(name, "costCode"), "nodes get it as the label %s, and instances as the tag CostCode", v1alpha1.CostCodeLabel)
	case strings.HasPrefix(key, "karpenter.sh/") || strings.HasPrefix(key, "kubernetes.io/") || strings.HasPrefix(key, "k8s.io/"):
		l.MarkNotKept("Karpenter v1 reserves labels of this domain: give the nodes a label of your own, and change selectors that use it")
	default:
		p.Spec.Instances.Requirements = append(p.Spec.Instances.Requirements,
			v1alpha1.Requirement{Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{value}})
		l.MarkKeptAs(draft.PoolField(name, "instances.requirements"), "Karpenter writes a requirement of one value on the nodes as a label")
	}
}
