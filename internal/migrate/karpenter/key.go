package karpenter

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/migrate/capsule"
	"croft.dev/croft/internal/migrate/draft"
	"croft.dev/croft/internal/migrate/gatekeeper"
	"croft.dev/croft/internal/migrate/kubernetes"
	"croft.dev/croft/internal/migrate/source"
)

// node are a Provisioner's or a NodePool's settings of its nodes, in any version of its
// API.
type node struct {
	labels, taints source.Field
}

func nodeOf(o *source.Object) node {
	if o.Kind == "Provisioner" {
		return node{o.At("spec", "labels"), o.At("spec", "taints")}
	}
	return node{o.At("spec", "template", "metadata", "labels"), o.At("spec", "template", "spec", "taints")}
}

// ties are labels with a taint of the same key and value: they keep other pods off the
// nodes and its own on them.
func (n node) ties() map[string]string {
	ties := map[string]string{}
	for _, t := range n.taints.Items() {
		key, value := t.At("key").Text(), t.At("value").Text()
		if value != "" && n.labels.At(key).Text() == value {
			ties[key] = value
		}
	}
	return ties
}

// ChooseKey finds the key that ties most nodes to their pools.
func ChooseKey(d *draft.Draft) {
	votes := votes(d)
	keys := slices.SortedFunc(maps.Keys(votes), func(a, b string) int {
		return cmp.Or(cmp.Compare(votes[b], votes[a]), cmp.Compare(a, b))
	})
	keys = slices.DeleteFunc(keys, func(key string) bool {
		return key == "" || strings.HasPrefix(key, "karpenter.") || strings.HasPrefix(key, "kubernetes.io/") ||
			strings.HasPrefix(key, "node.kubernetes.io/") || key == corev1.LabelTopologyZone
	})
	d.Key = v1alpha1.DefaultNodePoolKey
	if len(keys) == 0 {
		return
	}
	d.Key = keys[0]
	if d.Key != v1alpha1.DefaultNodePoolKey {
		d.Platform.NodePoolKey = d.Key
		if !strings.Contains(d.Key, "node-restriction.kubernetes.io/") {
			d.Note("platform.nodePoolKey stays %s, so that running nodes and what people wrote keep their meaning; a kubelet can set this label on its own node, "+
				"which it cannot below node-restriction.kubernetes.io/ (croft's default is %s)", d.Key, v1alpha1.DefaultNodePoolKey)
		}
	}
	for _, key := range keys[1:] {
		if votes[key] >= tied {
			d.Note("nodes are tied to pools by %s, and some by %s: croft uses the first for all", d.Key, key)
		}
	}
}

// tied is the weight of a label and a taint of the same key and value.
const tied = 3

// votes weigh for each key the evidence that it ties nodes to pools: labels and taints
// most, and nodeSelectors by it.
func votes(d *draft.Draft) map[string]int {
	votes := map[string]int{}
	for _, o := range d.KarpenterPools() {
		n := nodeOf(o)
		for key := range n.ties() {
			votes[key] += tied
		}
		for _, t := range n.taints.Items() {
			if key := t.At("key").Text(); t.At("value").Text() != "" && strings.Contains(key, "pool") {
				votes[key]++
			}
		}
	}
	for _, a := range gatekeeper.Mutators(d) {
		for key := range a.Selector().TextMap() {
			votes[key] += 2
		}
		for _, t := range a.Tolerations() {
			if key := t.At("key").Text(); t.At("value").Text() != "" {
				votes[key]++
			}
		}
	}
	for key := range capsule.NodeSelectors(d) {
		votes[key]++
	}
	for _, o := range d.Of("", "Namespace") {
		for key := range kubernetes.NodeSelectorOf(o) {
			votes[key]++
		}
	}
	return votes
}

// tieTo accounts for the labels and taints of a pool's nodes.
func tieTo(d *draft.Draft, name string, o *source.Object, p *draft.Pool) {
	n := nodeOf(o)
	ties := n.ties()
	puts := slices.ContainsFunc(n.taints.Items(), func(t source.Field) bool { return isEvicting(d, t) })
	for _, t := range n.taints.Items() {
		taint(d, name, t, ties, p, puts)
	}
	n.taints.Kept("platform.nodePoolKey")
	for _, l := range n.labels.Fields() {
		label(d, name, l, ties, p)
	}
	p.Values = append(p.Values, name)
	if value, tied := ties[d.Key]; tied {
		if value != name {
			p.Values = append(p.Values, value)
			n.labels.At(d.Key).Changed("platform.nodePoolKey", "nodes will have the value %s, the pool's name, and no longer %s: change what selects nodes by it", name, value)
		}
		return
	}
	n.taints.UnsetChanged("platform.nodePoolKey", "this pool's nodes are not tied to it by a label and a taint of %s: croft gives them both, "+
		"so only pods of tenants of this pool run here, and all others are put out; take pool %s out of croft.yaml if the platform's own run here", d.Key, name)
}

// isEvicting reports whether a taint is the key's and evicts pods that bypassed the
// scheduler.
func isEvicting(d *draft.Draft, t source.Field) bool {
	return t.At("key").Text() == d.Key && t.At("effect").Text() == string(corev1.TaintEffectNoExecute)
}

// taint accounts for one taint of a pool's nodes. Of the taints that tie, at most one
// evicts pods.
func taint(d *draft.Draft, name string, t source.Field, ties map[string]string, p *draft.Pool, puts bool) {
	key, value := t.At("key").Text(), t.At("value").Text()
	switch {
	case key == d.Key && puts && value == name:
		t.Kept("platform.nodePoolKey")
	case key == d.Key:
		t.Kept("platform.nodePoolKey")
		t.At("effect").Changed("platform.nodePoolKey", "croft taints its nodes NoSchedule and NoExecute: a pod that came around the scheduler is put out again")
		p.Values = append(p.Values, value)
	case ties[key] != "":
		t.Changed("platform.nodePoolKey", "ties nodes to the pool by another key than %s, which croft uses for all pools: change what tolerates it", d.Key)
		p.Values = append(p.Values, value)
	default:
		t.NotKept("a Pool's nodes have the taint of their pool alone, which keeps off every pod but its tenants': " +
			"if this one says more, keep a NodePool of your own outside of croft for those nodes")
	}
}

// label accounts for a label of nodes. A label without a field in croft becomes a
// requirement, which Karpenter writes on the nodes as the label.
func label(d *draft.Draft, name string, l source.Field, ties map[string]string, p *draft.Pool) {
	key, value := l.Key(), l.Text()
	switch {
	case key == d.Key:
		l.Kept("platform.nodePoolKey")
	case ties[key] != "":
		l.Changed("platform.nodePoolKey", "ties nodes to the pool by another key than %s, which croft uses for all pools: change what selects nodes by it", d.Key)
	case key == v1alpha1.CostCodeLabel:
		p.Spec.CostCode = value
		l.Kept(draft.PoolField(name, "costCode"))
	case draft.IsCostCode(key) && (p.Spec.CostCode == "" || p.Spec.CostCode == value):
		p.Spec.CostCode = value
		l.Changed(draft.PoolField(name, "costCode"), "nodes carry it as the label %s, and instances as the tag CostCode", v1alpha1.CostCodeLabel)
	case strings.HasPrefix(key, "karpenter.sh/") || strings.HasPrefix(key, "kubernetes.io/") || strings.HasPrefix(key, "k8s.io/"):
		l.NotKept("Karpenter v1 lets nobody set labels below this domain: give the nodes one of your own, and change what selects them")
	default:
		p.Spec.Instances.Requirements = append(p.Spec.Instances.Requirements,
			v1alpha1.Requirement{Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{value}})
		l.KeptAs(draft.PoolField(name, "instances.requirements"), "Karpenter writes a requirement of one value on the nodes as a label")
	}
}
