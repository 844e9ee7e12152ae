package network

import "croft.dev/croft/internal/rules/admissionpolicy"

// Bounds and texts that listFloorBounds and listCalicoBounds share.
const (
	mostRules = 200
	mostPeers = 500

	fewPolicies = "policies of this API add up, so that a long one can be written as several"
	peersReason = "teams write up to some tens; " +
		"lists of a provider's networks that are longer than this are published as few wider blocks, too"
	peersWay = "write several NetworkPolicies, or wider blocks"
)

// listFloorBounds returns the bounds of tenants' own NetworkPolicies.
func listFloorBounds() []admissionpolicy.Bound {
	var all []admissionpolicy.Bound
	for _, direction := range []struct{ rules, peers, sample string }{
		{"spec.ingress", "from", `{"podSelector": {}}`},
		{"spec.egress", "to", `{"ipBlock": {"cidr": "0.0.0.0/0"}}`},
	} {
		peers := direction.rules + "[]." + direction.peers
		all = append(all,
			admissionpolicy.Bound{
				Path: direction.rules, Max: mostRules,
				Reason: fewPolicies,
				Advice: peersWay,
				Sample: `{}`,
			},
			admissionpolicy.Bound{
				Path: peers, Max: mostPeers,
				Reason: peersReason,
				Advice: peersWay,
				Sample: direction.sample,
			},
			admissionpolicy.Bound{
				Path: direction.rules + "[].ports", Max: mostPeers,
				Reason: fewPolicies,
				Advice: "write ranges by endPort, or several NetworkPolicies",
				Sample: `{"port": 53}`,
			},
			admissionpolicy.Bound{
				Path: peers + "[].namespaceSelector.matchExpressions", Max: mostPeers,
				Reason: "one for each peer",
				Advice: peersWay,
				Sample: `{"key": "` + namespaceName + `", "operator": "In"}`,
			},
			admissionpolicy.Bound{
				Path: peers + "[].namespaceSelector.matchExpressions[].values", Max: mostPeers,
				Reason: "a tenant and the platform have up to 128 namespaces",
				Advice: peersWay,
				Sample: `"shop"`,
			},
		)
	}
	return append(all, admissionpolicy.Bound{
		Path: "spec.egress[].to[].ipBlock.except", Max: mostPeers,
		Reason: "one for each peer",
		Advice: peersWay,
		Sample: `"169.254.169.254/32"`,
	})
}

// listCalicoBounds returns the bounds of tenants' own Calico NetworkPolicies. Each of their rules
// has lists of networks and of exceptions from them.
func listCalicoBounds() []admissionpolicy.Bound {
	const way = "write several policies, or wider blocks"
	return []admissionpolicy.Bound{
		{
			Path: "spec.ingress", Max: mostRules,
			Reason: fewPolicies,
			Advice: way,
			Sample: `{"action": "Allow", "source": {"namespaceSelector": "kubernetes.io/metadata.name == 'shop'"}}`,
		},
		{
			Path: "spec.egress", Max: mostRules,
			Reason: fewPolicies,
			Advice: way,
			Sample: `{"action": "Allow", "protocol": "UDP", "destination": {}}`,
		},
		{
			Path: "spec.egress[].destination.nets", Max: mostPeers,
			Reason: peersReason,
			Advice: way,
			Sample: `"0.0.0.0/0"`,
		},
		{
			// Each network of a rule is compared with all exceptions of the rule.
			Path: "spec.egress[].destination.notNets", Max: 50,
			Reason: "a rule has to exclude two metadata addresses",
			Advice: way,
			Sample: `"169.254.169.254/32"`,
		},
		{
			Path: "spec.egress[].destination.ports", Max: mostPeers,
			Reason: fewPolicies,
			Advice: "write ranges, or several policies",
			Sample: `53`,
		},
	}
}
