package estate

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/manifest"
	"croft.dev/croft/internal/declare/secondary"
)

// checkPrefixes refuses reservations with too few prefixes for a single node.
func checkPrefixes(_ *checker, n *v1alpha1.SecondaryNetwork) []finding {
	if n.Spec.PrefixesPerNode == 0 {
		return nil
	}
	var all []finding
	for i := range n.Spec.Zones {
		at := field.NewPath("spec", "zones").Index(i).Child("podCIDR")
		r, err := secondary.ReservationOf(n.Name, &n.Spec.Zones[i])
		switch {
		case err != nil: // the schema refuses it
		case r.CountPrefixes() < uint64(n.Spec.PrefixesPerNode): //nolint:gosec // the schema refuses negative ones
			all = append(all, makeFinding(at, "%s has %d prefixes of 16 IPv4 addresses, and prefixesPerNode requires %d for each "+
				"node; reserve more, or ask for less", r.Pods, r.CountPrefixes(), n.Spec.PrefixesPerNode)...)
		}
	}
	return all
}

// checkPoolPrefixes refuses pools whose nodes cannot know the prefixes of their interfaces, and
// instance types that support too few of them.
func checkPoolPrefixes(w *checker, p *v1alpha1.Pool) []finding {
	var all []finding
	types, listed := secondary.PossibleTypes(&p.Spec.Instances)
	for i, name := range p.Spec.SecondaryNetworks {
		at := field.NewPath("spec", "secondaryNetworks").Index(i)
		o, known := w.first[manifest.ID{Kind: manifest.KindNetwork, Name: name}]
		if !known || w.Networks[o.Index].Spec.PrefixesPerNode == 0 {
			continue
		}
		prefixes := int(w.Networks[o.Index].Spec.PrefixesPerNode)
		if !p.Spec.WaitForNetworks {
			all = append(all, makeFinding(at, "%s has prefixesPerNode, which the node learns only from croft's agent; set "+
				"waitForNetworks, which is for pools on AWS, or leave prefixesPerNode out", name)...)
		}
		var small []string
		for _, t := range types {
			if l, known := secondary.LimitsOf(t); known && l.Addresses-1 < prefixes {
				small = append(small, t)
			}
		}
		if listed && len(small) > 0 {
			l, _ := secondary.LimitsOf(small[0])
			all = append(all, makeFinding(at, "%s gives each interface %d prefixes, and one of %s has room for %d; leave out %s, "+
				"or ask for less", name, prefixes, small[0], l.Addresses-1, strings.Join(small, ", "))...)
		}
	}
	return all
}
