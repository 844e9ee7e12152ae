package recommend

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/cost/money"
	"croft.dev/croft/internal/cost/price"
)

// simulatedNode is a node of the simulation.
type simulatedNode struct {
	offering price.Offering
	hourly   money.Amount
	// free is the rest for pods, after the daemons.
	free size
	pods []*pod
	// isSelective means that a pod has constraints on other pods.
	isSelective bool
}

// placement is the result of a simulation: all pods on nodes of one type.
type placement struct {
	*instanceType
	nodes  []*simulatedNode
	hourly money.Amount
}

// group is the pods that stay in one zone, on nodes that are bought in the same way.
type group struct {
	// offering is the offering of their present nodes, without a type.
	offering price.Offering
	// labels are the labels that all their present nodes have, except labels of the type.
	labels map[string]string
	pods   []*pod
}

// groupPods returns the groups of pods, in the order of their zones.
func groupPods(pods []*pod) []*group {
	byOffering := map[price.Offering]*group{}
	var all []*group
	for _, p := range pods {
		offering := p.node.offering
		offering.InstanceType = ""
		g := byOffering[offering]
		if g == nil {
			g = &group{offering: offering, labels: map[string]string{}}
			maps.Copy(g.labels, p.node.object.Labels)
			byOffering[offering], all = g, append(all, g)
		}
		maps.DeleteFunc(g.labels, func(key, value string) bool {
			return isTypeLabel(key) || key == corev1.LabelHostname || p.node.object.Labels[key] != value
		})
		g.pods = append(g.pods, p)
	}
	slices.SortFunc(all, func(a, b *group) int {
		return cmp.Or(strings.Compare(a.offering.Zone, b.offering.Zone), strings.Compare(a.offering.CapacityType, b.offering.CapacityType),
			strings.Compare(a.offering.Region, b.offering.Region))
	})
	return all
}

// findCheapest returns the placement with the lowest cost, below the given limit, on nodes of a type that
// the function allows. It returns nil if no type is that cheap.
func (c *cluster) findCheapest(p *pool, pods []*pod, limit money.Amount, allows func(*instanceType) bool) *placement {
	groups := groupPods(pods)
	var best *placement
	for _, t := range c.types {
		if !allows(t) || !p.suits(t, groups) {
			continue
		}
		if found := c.placePods(p, groups, t, limit); found != nil {
			best, limit = found, found.hourly
		}
	}
	return best
}

// placePods places pods on nodes of one type: the largest pod first, each on the first node with room for it. It
// returns nil if a pod fits on no node, the cost reaches the limit, a price is unknown, or the nodes exceed
// the limits of the Pool.
func (c *cluster) placePods(p *pool, groups []*group, t *instanceType, limit money.Amount) *placement {
	whole := t.allocatable.subtract(p.sumDaemons())
	if whole.cpu < 0 || whole.memory < 0 || whole.pods <= 0 {
		return nil
	}
	result := &placement{instanceType: t}
	var least money.Amount
	prices := make([]money.Amount, len(groups))
	for i, g := range groups {
		offering := g.offering
		offering.InstanceType = t.name
		found := c.prices.FindInstance(offering)
		if !found.Known || !p.types[t.name] && !c.prices.IsOffered(offering) {
			return nil
		}
		prices[i] = found.Amount
		least += found.Amount * money.Amount(countLeast(g.pods, whole))
	}
	if least >= limit {
		return nil
	}
	for i, g := range groups {
		nodes := fillNodes(g, t, whole)
		if nodes == nil {
			return nil
		}
		for _, n := range nodes {
			n.hourly = prices[i]
			result.hourly += prices[i]
		}
		result.nodes = append(result.nodes, nodes...)
	}
	if result.hourly >= limit || !p.isWithinLimits(t, len(result.nodes)) {
		return nil
	}
	return result
}

// countLeast returns a number of nodes below which pods cannot fit.
func countLeast(pods []*pod, whole size) int64 {
	var sum size
	for _, p := range pods {
		sum = sum.add(p.size)
	}
	return max(divideUp(sum.cpu, whole.cpu), divideUp(sum.memory, whole.memory), divideUp(sum.pods, whole.pods))
}

// divideUp returns 0 for a part of nothing.
func divideUp(sum, part int64) int64 {
	if part == 0 {
		return 0
	}
	return (sum + part - 1) / part
}

// fillNodes returns the nodes of one group, or nil if a pod fits on no node.
func fillNodes(g *group, t *instanceType, whole size) []*simulatedNode {
	pods := slices.Clone(g.pods)
	slices.SortStableFunc(pods, func(a, b *pod) int {
		return cmp.Compare(max(b.size.cpu*whole.memory, b.size.memory*whole.cpu), max(a.size.cpu*whole.memory, a.size.memory*whole.cpu))
	})
	offering := g.offering
	offering.InstanceType = t.name
	var nodes []*simulatedNode
	for _, p := range pods {
		if !p.size.fitsInto(whole) {
			return nil
		}
		at := slices.IndexFunc(nodes, func(n *simulatedNode) bool { return n.accepts(p) })
		if at < 0 {
			at, nodes = len(nodes), append(nodes, &simulatedNode{offering: offering, free: whole})
		}
		n := nodes[at]
		n.free, n.pods, n.isSelective = n.free.subtract(p.size), append(n.pods, p), n.isSelective || p.isSelective()
	}
	return nodes
}

// isSelective reports whether the pod must be on another node than some other pods.
func (p *pod) isSelective() bool { return len(p.apart)+len(p.ports) > 0 }

func (n *simulatedNode) accepts(p *pod) bool {
	return p.size.fitsInto(n.free) && (!n.isSelective && !p.isSelective() || !slices.ContainsFunc(n.pods, p.conflictsWith))
}

// isWithinLimits reports whether the Pool's limits allow a number of new nodes, next to its empty nodes.
func (p *pool) isWithinLimits(t *instanceType, count int) bool {
	used := size{t.capacity.cpu * int64(count), t.capacity.memory * int64(count), int64(count)}
	for _, n := range p.empty {
		whole := readSize(n.object.Status.Capacity)
		used = used.add(size{whole.cpu, whole.memory, 1})
	}
	for name, quantity := range p.Spec.Limits {
		switch name {
		case corev1.ResourceCPU:
			if used.cpu > quantity.MilliValue() {
				return false
			}
		case corev1.ResourceMemory:
			if used.memory<<20 > quantity.Value() {
				return false
			}
		case "nodes":
			if used.pods > quantity.Value() {
				return false
			}
		default: // Karpenter counts nothing else
		}
	}
	return true
}

// suits reports whether nodes of a type meet the requirements of the Pool and of the pods, and run their images.
func (p *pool) suits(t *instanceType, groups []*group) bool {
	burstable := false
	for _, n := range p.nodes {
		if n.object.Labels[corev1.LabelArchStable] != t.labels[corev1.LabelArchStable] {
			return false
		}
		burstable = burstable || isBurstable(n.offering.InstanceType)
	}
	if isBurstable(t.name) && !burstable {
		return false
	}
	for _, g := range groups {
		labels := maps.Clone(g.labels)
		maps.Copy(labels, t.labels)
		if !t.meets(selectFor(p.Spec.Instances.Requirements), labels) {
			return false
		}
		checked := map[string]bool{}
		for _, each := range g.pods {
			selection := selectedBy(each.object)
			if key, err := json.Marshal(selection.Spec); err == nil && !checked[string(key)] {
				checked[string(key)] = true
				if !t.meets(selection, labels) {
					return false
				}
			}
		}
	}
	return true
}

// selectedBy returns a pod with the selection of nodes of the given pod, and nothing else.
func selectedBy(object *corev1.Pod) *corev1.Pod {
	selection := &corev1.Pod{Spec: corev1.PodSpec{NodeSelector: object.Spec.NodeSelector}}
	if a := object.Spec.Affinity; a != nil && a.NodeAffinity != nil {
		selection.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution}}
	}
	return selection
}

// selectFor returns a pod that selects nodes by the requirements of a Pool.
func selectFor(requirements []v1alpha1.Requirement) *corev1.Pod {
	if len(requirements) == 0 {
		return &corev1.Pod{}
	}
	var term corev1.NodeSelectorTerm
	for _, r := range requirements {
		term.MatchExpressions = append(term.MatchExpressions, corev1.NodeSelectorRequirement{Key: r.Key, Operator: r.Operator, Values: r.Values})
	}
	return &corev1.Pod{Spec: corev1.PodSpec{Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{term}}}}}}
}

// meets reports whether a node of the type with these labels is selected. A label that the type may or may not
// have meets no requirement.
func (t *instanceType) meets(selection *corev1.Pod, labels map[string]string) bool {
	if !t.measured && slices.ContainsFunc(listKeys(selection), func(key string) bool { return isTypeLabel(key) && labels[key] == "" }) {
		return false
	}
	selected, err := nodeaffinity.GetRequiredNodeAffinity(selection).Match(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: labels}})
	return err == nil && selected
}

// listKeys returns the labels by which a pod selects nodes.
func listKeys(selection *corev1.Pod) []string {
	var keys []string
	for key := range selection.Spec.NodeSelector {
		keys = append(keys, key)
	}
	if a := selection.Spec.Affinity; a != nil && a.NodeAffinity != nil && a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil {
		for _, term := range a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
			for _, r := range term.MatchExpressions {
				keys = append(keys, r.Key)
			}
		}
	}
	return keys
}

// allowsSpot reports whether pods may run on spot nodes with the labels of their present nodes.
func allowsSpot(p *pod) bool {
	labels := maps.Clone(p.node.object.Labels)
	labels[karpenterv1.CapacityTypeLabelKey] = karpenterv1.CapacityTypeSpot
	delete(labels, corev1.LabelHostname)
	t := &instanceType{measured: true}
	return t.meets(selectedBy(p.object), labels)
}
