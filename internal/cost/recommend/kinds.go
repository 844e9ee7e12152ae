package recommend

import (
	"fmt"
	"slices"
	"strings"
	"time"

	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/yaml"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/wording"
)

// defaultTTL is the default of a Pool's emptyTTL. Nodes that stay without pods for longer are worth a change.
const defaultTTL = time.Hour

// recommendRemoval recommends to delete nodes without pods, if Karpenter keeps them for long.
func (p *pool) recommendRemoval() []Recommendation {
	if len(p.empty) == 0 {
		return nil
	}
	count := fmt.Sprintf("%d of %s without pods", len(p.empty), wording.FormatCount(len(p.empty)+len(p.nodes), "node"))
	ttl, err := time.ParseDuration(string(p.Spec.EmptyTTL))
	if never := p.Spec.EmptyTTL == v1alpha1.Never; !never && (err != nil || ttl <= defaultTTL) {
		p.limits = append(p.limits, fmt.Sprintf("%s: Karpenter deletes such nodes after emptyTTL %s, unless budgets of the Pool or the annotation "+
			"%s keep them", count, p.Spec.EmptyTTL, karpenterv1.DoNotDisruptAnnotationKey))
		return nil
	}
	r := p.makeRecommendation(IdleNodes, p.empty, nil)
	r.Reason = fmt.Sprintf("%s: emptyTTL %s keeps such nodes", count, p.Spec.EmptyTTL)
	r.Change = p.formatChange(map[string]any{"emptyTTL": "1h"})
	r.Assumptions = append(r.Assumptions, "no pod needs these nodes for the whole month")
	if r.MonthlySavings <= 0 {
		return nil
	}
	return []Recommendation{r}
}

// recommendConsolidation recommends to place the pods on fewer nodes of a type that the pool has.
func (p *pool) recommendConsolidation(same *placement) []Recommendation {
	if same == nil || p.consolidates() || !isWorthwhile(same.hourly, p.sumHourly()) {
		return nil
	}
	r := p.makeRecommendation(Consolidation, p.nodes, same.nodes)
	r.Reason = fmt.Sprintf("%s on %s, and run on %s", p.formatFit(), same.formatNodes(), formatTypes(p.nodes))
	r.Change = p.formatChange(p.listConsolidation())
	r.Assumptions = append(r.Assumptions, assumeMoves)
	return []Recommendation{r}
}

const (
	assumeMoves = "Karpenter finds as good a placement as the simulation; moved pods restart"
	assumeSpot  = "the workloads survive interruptions, which the cloud announces shortly before"
	assumeStock = "the cloud has spot instances at the present price: otherwise Karpenter launches on-demand instances"
	assumeOld   = "existing on-demand nodes are replaced, by their ttl or by hand: this change alone keeps them"
)

// consolidates reports whether Karpenter moves pods to save money.
func (p *pool) consolidates() bool {
	return p.Spec.Consolidation == v1alpha1.ConsolidateWhenUnderutilized
}

// listConsolidation returns the fields with which Karpenter moves pods to save money.
func (p *pool) listConsolidation() map[string]any {
	fields := map[string]any{"consolidation": string(v1alpha1.ConsolidateWhenUnderutilized)}
	if p.Spec.EmptyTTL == v1alpha1.Never {
		fields["emptyTTL"] = "1h" // Never allows no consolidation
	}
	return fields
}

// recommendSpot recommends spot nodes of the same types in place of on-demand nodes. All workloads of the
// pool must have several pods, since any of them may get a spot node.
func (c *cluster) recommendSpot(p *pool) []Recommendation {
	if slices.Contains(p.Spec.Instances.CapacityTypes, karpenterv1.CapacityTypeSpot) {
		return nil
	}
	spot := map[string]string{karpenterv1.CapacityTypeLabelKey: karpenterv1.CapacityTypeSpot}
	for _, r := range p.Spec.Instances.Requirements {
		if r.Key == karpenterv1.CapacityTypeLabelKey && !(&instanceType{measured: true}).meets(selectFor([]v1alpha1.Requirement{r}), spot) {
			return nil
		}
	}
	for _, each := range p.pods {
		kind, _, _ := strings.Cut(strings.TrimPrefix(each.workload, each.name.Namespace+"/"), "/")
		if c.replicas[each.workload] < 2 || slices.Contains([]string{"Pod", "Job", "CronJob"}, kind) || !allowsSpot(each) {
			return nil
		}
	}
	var removed []*node
	var placed []*simulatedNode
	onDemand := 0
	for _, n := range p.nodes {
		if n.offering.CapacityType != karpenterv1.CapacityTypeOnDemand {
			continue
		}
		onDemand++
		offering := n.offering
		offering.CapacityType = karpenterv1.CapacityTypeSpot
		if found := c.prices.FindInstance(offering); found.Known && isWorthwhile(found.Amount, n.hourly) {
			removed, placed = append(removed, n), append(placed, &simulatedNode{offering: offering, hourly: found.Amount, pods: n.pods})
		}
	}
	if len(removed) == 0 {
		return nil
	}
	r := p.makeRecommendation(CapacityType, removed, placed)
	r.Reason = fmt.Sprintf("%d of %s can be spot, at the present spot price: each workload has at least two pods", len(removed),
		wording.FormatCount(onDemand, "on-demand node"))
	r.Change = p.formatChange(map[string]any{"instances": map[string]any{
		"capacityTypes": append(slices.Clone(p.Spec.Instances.CapacityTypes), karpenterv1.CapacityTypeSpot)}})
	r.Assumptions = append(r.Assumptions, assumeSpot, assumeStock, assumeOld)
	return []Recommendation{r}
}

// recommendType recommends the instance type that is cheapest for all pods, if it is also cheaper than fewer
// nodes of a present type.
func (c *cluster) recommendType(p *pool, same *placement) []Recommendation {
	limit := p.sumHourly()
	if same != nil {
		limit = same.hourly
	}
	types := p.Spec.Instances.InstanceTypes
	if slices.ContainsFunc(p.Spec.Instances.Requirements, func(r v1alpha1.Requirement) bool { return r.MinValues != nil && *r.MinValues > 1 }) {
		return nil // the Pool needs a choice of types
	}
	best := c.findCheapest(p, p.pods, limit, func(t *instanceType) bool {
		// Karpenter itself replaces nodes by cheaper ones that the Pool allows.
		isChosen := p.consolidates() && (len(types) == 0 || slices.Contains(types, t.name))
		return !p.types[t.name] && !isChosen
	})
	if best == nil || !isWorthwhile(best.hourly, limit) {
		return nil
	}
	r := p.makeRecommendation(InstanceType, p.nodes, best.nodes)
	r.Reason = fmt.Sprintf("%s on %s, which cost less than %s", p.formatFit(), best.formatNodes(), formatTypes(p.nodes))
	r.Change = p.formatChange(map[string]any{"instances": map[string]any{"instanceTypes": []string{best.name}}})
	r.Assumptions = append(r.Assumptions, fmt.Sprintf("%s is as fast as the present types, and the cloud has enough of it: the Pool then allows no other type", best.name))
	if !best.measured {
		r.Assumptions = append(r.Assumptions, fmt.Sprintf("nodes of type %s reserve as much for their system as the nodes of the cluster do: the cluster has none to measure", best.name))
	}
	return []Recommendation{r}
}

// formatChange returns the lines of croft.yaml that set fields of the Pool.
func (p *pool) formatChange(fields map[string]any) string {
	text, err := yaml.Marshal(map[string]any{"pools": map[string]any{p.Name: fields}})
	if err != nil {
		panic(err) // texts and lists of texts
	}
	return string(text)
}

// formatFit begins a sentence about the pods of the pool.
func (p *pool) formatFit() string {
	if len(p.pods) == 1 {
		return "1 pod fits"
	}
	return fmt.Sprintf("%d pods fit", len(p.pods))
}

// formatNodes returns the number and the type of the nodes.
func (p *placement) formatNodes() string {
	return fmt.Sprintf("%s of type %s", wording.FormatCount(len(p.nodes), "node"), p.name)
}

// formatTypes returns the numbers and the types of nodes.
func formatTypes(nodes []*node) string {
	counts := map[string]int{}
	var names []string
	for _, n := range nodes {
		if counts[n.offering.InstanceType]++; counts[n.offering.InstanceType] == 1 {
			names = append(names, n.offering.InstanceType)
		}
	}
	slices.Sort(names)
	for i, name := range names {
		names[i] = fmt.Sprintf("%d %s", counts[name], name)
	}
	return strings.Join(names, " and ")
}
