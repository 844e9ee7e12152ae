package netpol

import (
	"maps"
	"math"
	"slices"

	"croft.dev/croft/internal/observe/netpol/calico"
	"croft.dev/croft/internal/observe/netpol/cluster"
	"croft.dev/croft/internal/observe/netpol/tier"
)

// additive is the common name of all NetworkPolicies, which have no order.
const additive = "NetworkPolicies"

// listTiers returns all policies that may select a namespace's pods, in their order: the
// cluster-wide ones of the tier Admin; Calico's by their tiers, with NetworkPolicies in the
// default tier; and the cluster-wide ones of the tier Baseline.
func (m *Map) listTiers(n *namespace, clusterWide []*cluster.Policy) []tier.Tier {
	first, last := tier.Tier{Order: cluster.AdminOrder, Tied: true}, tier.Tier{Order: cluster.BaselineOrder, Tied: true}
	for _, p := range clusterWide {
		if p.Baseline {
			last.Policies = append(last.Policies, p.Policy)
		} else {
			first.Policies = append(first.Policies, p.Policy)
		}
	}
	named := map[string]*tier.Tier{calico.DefaultTier: {Order: calico.DefaultTierOrder, Denies: true}}
	for name, t := range m.calicoTiers {
		if name == calico.DefaultTier {
			t.Order = calico.DefaultTierOrder
		}
		named[name] = &t
	}
	for _, policies := range [][]*calico.Policy{m.global, n.calico} {
		for _, p := range policies {
			if named[p.Tier] == nil { // a tier that does not exist yet
				named[p.Tier] = &tier.Tier{Order: math.Inf(1), Denies: true}
			}
			named[p.Tier].Policies = append(named[p.Tier].Policies, p.Policy)
		}
	}
	if len(n.kubernetes) > 0 {
		own := named[calico.DefaultTier]
		own.Policies = append(own.Policies, &tier.Policy{Name: additive, Order: calico.KubernetesOrder, Evaluate: n.evaluateTogether})
	}
	var all []tier.Tier
	for _, name := range slices.Sorted(maps.Keys(named)) {
		all = append(all, *named[name])
	}
	all = slices.DeleteFunc(append(all, first, last), func(t tier.Tier) bool { return len(t.Policies) == 0 })
	tier.SortTiers(all)
	return all
}

// evaluateTogether evaluates all NetworkPolicies of the namespace.
func (n *namespace) evaluateTogether(c *tier.Connection, d tier.Direction) (tier.Match, tier.Action) {
	selects := tier.No
	for _, p := range n.kubernetes {
		selected, decides := p.Evaluate(c, d)
		if decides == tier.Allow {
			return tier.Yes, tier.Allow
		}
		selects = tier.MatchAny(selects, selected)
	}
	return selects, ""
}
