package draft

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/scheduling"

	"croft.dev/croft/internal/adoption/migrate/source"
)

// formerPoolLabel is the label with the name of the Provisioner on its nodes.
const formerPoolLabel = "karpenter.sh/provisioner-name"

// Nodes are the nodes of a Provisioner or a NodePool, as the scheduler compares them with pods.
type Nodes struct {
	// Pool is the name of the resulting pool.
	Pool string
	From *source.Object
	// Labels and Taints are the fields of the object, in any version of its API.
	Labels, Taints source.Field

	offered scheduling.Requirements
	weight  int64
}

// ListNodes returns the nodes of all Provisioners and NodePools, in Karpenter's order: by weight,
// then by name.
func (d *Draft) ListNodes() []*Nodes {
	if d.nodes != nil {
		return d.nodes
	}
	for _, o := range d.KarpenterPools() {
		d.nodes = append(d.nodes, newNodes(o))
	}
	slices.SortStableFunc(d.nodes, func(a, b *Nodes) int {
		return cmp.Or(cmp.Compare(b.weight, a.weight), cmp.Compare(a.Pool, b.Pool))
	})
	return d.nodes
}

// FindNodes returns the nodes of one object.
func (d *Draft) FindNodes(o *source.Object) *Nodes {
	for _, n := range d.ListNodes() {
		if n.From == o {
			return n
		}
	}
	return newNodes(o)
}

func newNodes(o *source.Object) *Nodes {
	n := &Nodes{Pool: PoolName(o), From: o, Labels: o.At("spec", "labels"), Taints: o.At("spec", "taints")}
	requirements, label := o.At("spec", "requirements"), formerPoolLabel
	if o.Kind == "NodePool" {
		template := o.At("spec", "template")
		n.Labels, n.Taints = template.At("metadata", "labels"), template.At("spec", "taints")
		requirements, label = template.At("spec", "requirements"), karpenterv1.NodePoolLabelKey
	}
	n.weight, _ = o.At("spec", "weight").Number()
	n.offered = scheduling.NewLabelRequirements(n.Labels.TextMap())
	n.offered.Add(scheduling.NewRequirement(label, corev1.NodeSelectorOpIn, o.Name))
	for _, r := range requirements.Items() {
		if s, ok := ParseSelection(r); ok {
			n.offered.Add(s.buildRequirement())
		}
	}
	if !n.offered.Has(corev1.LabelOSStable) {
		n.offered.Add(scheduling.NewRequirement(corev1.LabelOSStable, corev1.NodeSelectorOpIn, string(corev1.Linux)))
	}
	return n
}

// PoolName returns the name of the pool that a Provisioner or a NodePool becomes: its own name
// if it is valid for a Pool. Karpenter refuses to change a NodePool with replicas into one
// without, so the pool of such a NodePool gets another name.
func PoolName(o *source.Object) string {
	name := ToName(o.Name)
	if IsStatic(o) {
		name = ToName(name + "-dynamic")
	}
	return name
}

// IsStatic reports whether a NodePool has a fixed number of nodes.
func IsStatic(o *source.Object) bool { return o.Kind == "NodePool" && o.At("spec", "replicas").Found() }

// GetLabel returns the value of a label that every node has, from a label or from a requirement
// with one value, or "" if there is none.
func (n *Nodes) GetLabel(key string) string {
	if r := n.offered[key]; r != nil && r.Operator() == corev1.NodeSelectorOpIn && r.Len() == 1 {
		return r.Any()
	}
	return ""
}

// ListTies returns labels with a taint of the same key and value: they keep other pods off the
// nodes, and the pool's own pods on them.
func (n *Nodes) ListTies() map[string]string {
	ties := map[string]string{}
	for _, t := range n.Taints.Items() {
		if key, value := t.At("key").Text(), t.At("value").Text(); value != "" && n.GetLabel(key) == value {
			ties[key] = value
		}
	}
	return ties
}

// platformTaints reserve nodes for the platform's own pods, by Kubernetes' conventions.
var platformTaints = []string{"CriticalAddonsOnly", "node-role.kubernetes.io/master", "node-role.kubernetes.io/control-plane"}

// IsDedicated reports whether taints reserve the nodes for pods other than the platform's.
func (n *Nodes) IsDedicated() bool {
	return slices.ContainsFunc(n.Taints.Items(), func(t source.Field) bool {
		return !slices.Contains(platformTaints, t.At("key").Text())
	})
}

// IsToleratedBy reports whether pods with these tolerations may run on the nodes.
func (n *Nodes) IsToleratedBy(tolerations []corev1.Toleration) bool {
	return !slices.ContainsFunc(n.Taints.Items(), func(f source.Field) bool {
		taint := corev1.Taint{Key: f.At("key").Text(), Value: f.At("value").Text(), Effect: corev1.TaintEffect(f.At("effect").Text())}
		return !slices.ContainsFunc(tolerations, func(t corev1.Toleration) bool { return t.ToleratesTaint(klog.Background(), &taint, false) })
	})
}
