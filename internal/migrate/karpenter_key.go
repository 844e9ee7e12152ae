package migrate

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"croft.dev/croft/api/v1alpha1"
)

const (
	karpenterGroup = "karpenter.sh"
	awsGroup       = "karpenter.k8s.aws"
	kwokGroup      = "karpenter.kwok.sh"
)

// node is what a Provisioner or a NodePool says of its nodes, wherever the
// version of its API has it.
type node struct {
	labels, taints Field
}

func nodeOf(o *Object) node {
	if o.Kind == "Provisioner" {
		return node{o.At("spec", "labels"), o.At("spec", "taints")}
	}
	return node{o.At("spec", "template", "metadata", "labels"), o.At("spec", "template", "spec", "taints")}
}

// tie is a label and a taint of one key and value: what keeps others off the
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

// karpenterPools are all objects that become pools.
func (d *draft) karpenterPools() []*Object {
	return append(d.of(karpenterGroup, "Provisioner"), d.of(karpenterGroup, "NodePool")...)
}

// chooseKey finds the key that ties most nodes to their pools.
func (d *draft) chooseKey() {
	votes := d.votes()
	keys := slices.SortedFunc(maps.Keys(votes), func(a, b string) int {
		return cmp.Or(cmp.Compare(votes[b], votes[a]), cmp.Compare(a, b))
	})
	keys = slices.DeleteFunc(keys, func(key string) bool {
		return key == "" || strings.HasPrefix(key, "karpenter.") || strings.HasPrefix(key, "kubernetes.io/") ||
			strings.HasPrefix(key, "node.kubernetes.io/") || key == corev1.LabelTopologyZone
	})
	d.key = v1alpha1.DefaultNodePoolKey
	if len(keys) == 0 {
		return
	}
	d.key = keys[0]
	if d.key != v1alpha1.DefaultNodePoolKey {
		d.platform.NodePoolKey = d.key
		if !strings.Contains(d.key, "node-restriction.kubernetes.io/") {
			d.note("platform.nodePoolKey stays %s, so that running nodes and what people wrote keep their meaning; a kubelet can set this label on its own node, "+
				"which it cannot below node-restriction.kubernetes.io/ (croft's default is %s)", d.key, v1alpha1.DefaultNodePoolKey)
		}
	}
	for _, key := range keys[1:] {
		if votes[key] >= tied {
			d.note("nodes are tied to pools by %s, and some by %s: croft uses the first for all", d.key, key)
		}
	}
}

// tied is what a label and a taint of one key and value count for.
const tied = 3

// votes count for each key how much speaks for its tying nodes to pools: labels
// and taints most, and what selects nodes by it.
func (d *draft) votes() map[string]int {
	votes := map[string]int{}
	for _, o := range d.karpenterPools() {
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
	for _, a := range d.mutators() {
		for key := range a.selector().TextMap() {
			votes[key] += 2
		}
		for _, t := range a.tolerations() {
			if key := t.At("key").Text(); t.At("value").Text() != "" {
				votes[key]++
			}
		}
	}
	for key := range d.capsuleSelectors() {
		votes[key]++
	}
	for _, o := range d.of("", "Namespace") {
		for key := range nodeSelectorOf(o) {
			votes[key]++
		}
	}
	return votes
}

// tieTo accounts for the labels and taints of a pool's nodes.
func (d *draft) tieTo(name string, o *Object, p *pool) {
	n := nodeOf(o)
	ties := n.ties()
	puts := slices.ContainsFunc(n.taints.Items(), d.putsOut)
	for _, t := range n.taints.Items() {
		d.taint(name, t, ties, p, puts)
	}
	n.taints.Kept("platform.nodePoolKey")
	for _, l := range n.labels.Fields() {
		d.label(name, l, ties, p)
	}
	p.values = append(p.values, name)
	if value, tied := ties[d.key]; tied {
		if value != name {
			p.values = append(p.values, value)
			n.labels.At(d.key).Changed("platform.nodePoolKey", "nodes will have the value %s, the pool's name, and no longer %s: change what selects nodes by it", name, value)
		}
		return
	}
	n.taints.UnsetChanged("platform.nodePoolKey", "this pool's nodes are not tied to it by a label and a taint of %s: croft gives them both, "+
		"so only pods of tenants of this pool run here, and all others are put out; take pool %s out of croft.yaml if the platform's own run here", d.key, name)
}

// putsOut says whether a taint is the key's and puts out pods that came around the
// scheduler.
func (d *draft) putsOut(t Field) bool {
	return t.At("key").Text() == d.key && t.At("effect").Text() == string(corev1.TaintEffectNoExecute)
}

// taint accounts for one taint of a pool's nodes, of which one puts pods out or none.
func (d *draft) taint(name string, t Field, ties map[string]string, p *pool, puts bool) {
	key, value := t.At("key").Text(), t.At("value").Text()
	switch {
	case key == d.key && puts && value == name:
		t.Kept("platform.nodePoolKey")
	case key == d.key:
		t.Kept("platform.nodePoolKey")
		t.At("effect").Changed("platform.nodePoolKey", "croft taints its nodes NoSchedule and NoExecute: a pod that came around the scheduler is put out again")
		p.values = append(p.values, value)
	case ties[key] != "":
		t.Changed("platform.nodePoolKey", "ties nodes to the pool by another key than %s, which croft uses for all pools: change what tolerates it", d.key)
		p.values = append(p.values, value)
	default:
		t.NotKept("a Pool's nodes have the taint of their pool alone, which keeps off every pod but its tenants': " +
			"if this one says more, keep a NodePool of your own outside of croft for those nodes")
	}
}

// label accounts for a label of nodes. One that croft has no field for becomes a
// requirement, which Karpenter writes on the nodes as the label.
func (d *draft) label(name string, l Field, ties map[string]string, p *pool) {
	key, value := l.Key(), l.Text()
	switch {
	case key == d.key:
		l.Kept("platform.nodePoolKey")
	case ties[key] != "":
		l.Changed("platform.nodePoolKey", "ties nodes to the pool by another key than %s, which croft uses for all pools: change what selects nodes by it", d.key)
	case key == v1alpha1.CostCodeLabel:
		p.spec.CostCode = value
		l.Kept(poolField(name, "costCode"))
	case isCostCode(key) && (p.spec.CostCode == "" || p.spec.CostCode == value):
		p.spec.CostCode = value
		l.Changed(poolField(name, "costCode"), "nodes carry it as the label %s, and instances as the tag CostCode", v1alpha1.CostCodeLabel)
	case strings.HasPrefix(key, "karpenter.sh/") || strings.HasPrefix(key, "kubernetes.io/") || strings.HasPrefix(key, "k8s.io/"):
		l.NotKept("Karpenter v1 lets nobody set labels below this domain: give the nodes one of your own, and change what selects them")
	default:
		p.spec.Instances.Requirements = append(p.spec.Instances.Requirements,
			v1alpha1.Requirement{Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{value}})
		l.KeptAs(poolField(name, "instances.requirements"), "Karpenter writes a requirement of one value on the nodes as a label")
	}
}

// isCostCode recognises the label or the tag that says who pays.
func isCostCode(key string) bool {
	key = key[strings.LastIndexByte(key, '/')+1:]
	return strings.ReplaceAll(strings.ToLower(key), "-", "") == "costcode"
}
