package draft

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/scheduling"

	"croft.dev/croft/internal/migrate/source"
)

// formerPoolLabel is the label that nodes of a Provisioner had of its name.
const formerPoolLabel = "karpenter.sh/provisioner-name"

// Nodes are the nodes of a Provisioner or a NodePool, as the scheduler compares them with
// pods.
type Nodes struct {
	// Pool is the name of the pool that they become.
	Pool string
	From *source.Object
	// Labels and Taints are the fields of the object, in any version of its API.
	Labels, Taints source.Field

	offered scheduling.Requirements
	weight  int64
}

// Nodes are the nodes of all Provisioners and NodePools, in Karpenter's order: by weight,
// then by name.
func (d *Draft) Nodes() []*Nodes {
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

// NodesOf are the nodes of one object.
func (d *Draft) NodesOf(o *source.Object) *Nodes {
	for _, n := range d.Nodes() {
		if n.From == o {
			return n
		}
	}
	return newNodes(o)
}

func newNodes(o *source.Object) *Nodes {
	n := &Nodes{Pool: PoolName(o), From: o, Labels: o.At("spec", "labels"), Taints: o.At("spec", "taints")}
	requirements, own := o.At("spec", "requirements"), formerPoolLabel
	if o.Kind == "NodePool" {
		template := o.At("spec", "template")
		n.Labels, n.Taints = template.At("metadata", "labels"), template.At("spec", "taints")
		requirements, own = template.At("spec", "requirements"), karpenterv1.NodePoolLabelKey
	}
	n.weight, _ = o.At("spec", "weight").Number()
	n.offered = scheduling.NewLabelRequirements(n.Labels.TextMap())
	n.offered.Add(scheduling.NewRequirement(own, corev1.NodeSelectorOpIn, o.Name))
	for _, r := range requirements.Items() {
		if s, ok := SelectionOf(r); ok {
			n.offered.Add(s.requirement())
		}
	}
	if !n.offered.Has(corev1.LabelOSStable) {
		n.offered.Add(scheduling.NewRequirement(corev1.LabelOSStable, corev1.NodeSelectorOpIn, string(corev1.Linux)))
	}
	return n
}

// PoolName is the name of the pool that a Provisioner or a NodePool becomes: its own,
// where a Pool can have it. Karpenter refuses to change a NodePool with replicas into one
// without, so that its pool needs another name.
func PoolName(o *source.Object) string {
	name := AsName(o.Name)
	if IsStatic(o) {
		name = AsName(name + "-dynamic")
	}
	return name
}

// IsStatic reports whether a NodePool has a fixed number of nodes.
func IsStatic(o *source.Object) bool { return o.Kind == "NodePool" && o.At("spec", "replicas").Found() }

// Label is the value of a label that every node has, from a label or from a requirement
// of one value; "" if there is none.
func (n *Nodes) Label(key string) string {
	if r := n.offered[key]; r != nil && r.Operator() == corev1.NodeSelectorOpIn && r.Len() == 1 {
		return r.Any()
	}
	return ""
}

// Ties are labels with a taint of the same key and value: they keep other pods off the
// nodes and the pool's own on them.
func (n *Nodes) Ties() map[string]string {
	ties := map[string]string{}
	for _, t := range n.Taints.Items() {
		if key, value := t.At("key").Text(), t.At("value").Text(); value != "" && n.Label(key) == value {
			ties[key] = value
		}
	}
	return ties
}

// platformTaints keep nodes for the platform's own pods, by Kubernetes' conventions.
var platformTaints = []string{"CriticalAddonsOnly", "node-role.kubernetes.io/master", "node-role.kubernetes.io/control-plane"}

// IsDedicated reports whether taints keep the nodes for some pods other than the
// platform's.
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

// Selection is a requirement of pods for a label of their nodes.
type Selection struct {
	Key      string
	Operator corev1.NodeSelectorOperator
	Values   []string
	// ByNamespace means that the value is the name of the pod's namespace.
	ByNamespace bool
	At          source.Field
}

// Selected is a selection of one value.
func Selected(key, value string, at source.Field) Selection {
	return Selection{Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{value}, At: at}
}

// SelectedBy are the selections of a nodeSelector.
func SelectedBy(nodeSelector map[string]string, at source.Field) []Selection {
	var all []Selection
	for _, key := range slices.Sorted(maps.Keys(nodeSelector)) {
		all = append(all, Selected(key, nodeSelector[key], at))
	}
	return all
}

// SelectionOf reads a requirement: its key, operator and values.
func SelectionOf(f source.Field) (Selection, bool) {
	s := Selection{Key: f.At("key").Text(), Operator: corev1.NodeSelectorOperator(f.At("operator").Text()), Values: f.At("values").Texts(), At: f}
	switch s.Operator {
	case corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn:
		return s, s.Key != "" && len(s.Values) > 0
	case corev1.NodeSelectorOpExists, corev1.NodeSelectorOpDoesNotExist:
		return s, s.Key != ""
	case corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt, karpenterv1.NodeSelectorOpGte, karpenterv1.NodeSelectorOpLte:
		if len(s.Values) != 1 {
			return s, false
		}
		_, err := strconv.Atoi(s.Values[0])
		return s, s.Key != "" && err == nil
	}
	return s, false
}

func (s Selection) requirement() *scheduling.Requirement {
	return scheduling.NewRequirement(s.Key, s.Operator, slices.Clone(s.Values)...)
}

// String is the selection as people read it.
func (s Selection) String() string {
	if s.Operator == corev1.NodeSelectorOpIn && len(s.Values) == 1 {
		return s.Key + "=" + s.Values[0]
	}
	return strings.TrimSpace(s.Key + " " + string(s.Operator) + " " + strings.Join(s.Values, ","))
}

// ChoosesPools reports whether a selection can tell pools apart. Labels of instances, such
// as the architecture, do not: nodes of any pool may have them.
func (s Selection) ChoosesPools() bool {
	return s.Operator == corev1.NodeSelectorOpIn && (IsPoolLabel(s.Key) || !isInstanceLabel(s.Key))
}

// IsPoolLabel reports whether Karpenter sets a label to the name of the pool.
func IsPoolLabel(key string) bool {
	return key == karpenterv1.NodePoolLabelKey || key == formerPoolLabel
}

// isInstanceLabel reports whether Karpenter or its provider sets a label by the instance.
func isInstanceLabel(key string) bool {
	if now, ok := karpenterv1.NormalizedLabels[key]; ok {
		key = now
	}
	domain, _, _ := strings.Cut(key, "/")
	return karpenterv1.WellKnownLabels.Has(key) || key == corev1.LabelHostname || strings.HasPrefix(domain, "karpenter.") ||
		slices.Contains([]string{"eks.amazonaws.com", "kubernetes.azure.com", "cloud.google.com"}, domain)
}

// Fit is how many nodes of a pool meet a selection.
type Fit int

// No node, only some of them, or every node meets a selection.
const (
	NoNode Fit = iota
	SomeNodes
	EveryNode
)

// Fit compares the nodes with a selection.
func (n *Nodes) Fit(s Selection) Fit {
	asked := s.requirement()
	if !n.offered.Has(asked.Key) {
		switch {
		case isInstanceLabel(asked.Key) && !IsPoolLabel(asked.Key):
			return SomeNodes
		case s.Operator == corev1.NodeSelectorOpNotIn || s.Operator == corev1.NodeSelectorOpDoesNotExist:
			return EveryNode
		default:
			return NoNode
		}
	}
	has := n.offered.Get(asked.Key)
	switch {
	case has.Intersection(asked).Len() == 0:
		return NoNode
	case has.Operator() == corev1.NodeSelectorOpIn && !slices.ContainsFunc(has.Values(), func(v string) bool { return !asked.Has(v) }):
		return EveryNode
	default:
		return SomeNodes
	}
}
