package attach

import (
	"fmt"
	"net/netip"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/secondary"
)

// parsePrefixes returns the prefixes of an interface for pods' addresses, and whether pods can
// use the interface: either all its prefixes are in the zone's podCIDR, and there is at
// least one, or all nodes of the network share podCIDR.
func parsePrefixes(
	n *v1alpha1.SecondaryNetwork, part *v1alpha1.SecondaryNetworkZone, i *Interface,
) (all []netip.Prefix, usable bool) {
	if n.Spec.PrefixesPerNode == 0 {
		return nil, true
	}
	reservation, err := secondary.ReservationOf(n.Name, part)
	if err != nil {
		return nil, false
	}
	for _, text := range i.Prefixes {
		p, err := netip.ParsePrefix(text)
		if err != nil || !reservation.Pods.Contains(p.Addr()) {
			return nil, false
		}
		all = append(all, p)
	}
	return all, len(all) > 0
}

// checkPrefixes reports an interface without usable prefixes as a problem. EC2 chooses the
// prefixes: from a reservation of type prefix if the subnet has one, and otherwise from the
// whole subnet.
func (p *Plan) checkPrefixes(
	pool *Pool, c *Claim, n *v1alpha1.SecondaryNetwork, part *v1alpha1.SecondaryNetworkZone, i *Interface,
) {
	if _, usable := parsePrefixes(n, part, i); usable {
		return
	}
	message := fmt.Sprintf("interface %s has no prefix, and secondary network %s now requires %d: "+
		"delete the node claim, and Karpenter replaces the node", i.ID, n.Name, n.Spec.PrefixesPerNode)
	if len(i.Prefixes) > 0 {
		message = fmt.Sprintf("EC2 assigned interface %s the prefixes %q, and pods' addresses are in %s: reserve this range with the "+
			"type prefix, and no other range with that type in %s (croft networks plan), then delete the node claim",
			i.ID, i.Prefixes, part.PodCIDR, part.Subnet)
	}
	p.Problems = append(p.Problems, Problem{pool.Name, c.Name, []string{n.Name}, ReasonPrefixes, message})
}
