package attach

import "croft.dev/croft/internal/declare/secondary"

// ListAttached returns the interfaces of each claim that has one in every network of its pool,
// by the claim's UID and in the order of the pool's networks. It omits claims that still
// lack one.
func ListAttached(s *State) map[string][]secondary.NodeNetwork {
	x, all := buildIndex(s), map[string][]secondary.NodeNetwork{}
	for i := range s.Claims {
		if networks := x.listAttached(&s.Claims[i]); len(networks) > 0 {
			all[s.Claims[i].UID] = networks
		}
	}
	return all
}

// listAttached returns the interfaces of a claim, or nil unless it has all of them.
func (x *index) listAttached(c *Claim) []secondary.NodeNetwork {
	pool := x.pools[c.Pool]
	if pool == nil || c.Instance == "" {
		return nil
	}
	var all []secondary.NodeNetwork
	for _, name := range pool.Networks {
		declared, owned := x.networks[name], x.owned[Key(c.UID, name)]
		if declared == nil || len(owned) == 0 {
			return nil
		}
		part, n := findZone(declared, c.Zone), owned[0]
		if part == nil || n.MAC == "" || n.SourceDestCheck || n.Attachment == nil ||
			n.Attachment.Instance != c.Instance || !n.Attachment.Attached {
			return nil
		}
		prefixes, usable := parsePrefixes(declared, part, n)
		if !usable {
			return nil
		}
		all = append(all, secondary.NodeNetworkOf(declared, part, n.MAC, prefixes...))
	}
	return all
}
