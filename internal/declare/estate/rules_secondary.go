package estate

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/manifest"
	"croft.dev/croft/internal/declare/secondary"
)

// resolveNetworks returns the networks that are granted to a valid tenant.
func (w *checker) resolveNetworks(t *v1alpha1.Tenant) []Network {
	var all []Network
	for _, name := range t.Spec.Networks {
		if o, ok := w.first[manifest.ID{Kind: manifest.KindNetwork, Name: name}]; ok {
			all = append(all, Network{Name: name, SecondaryNetworkSpec: w.Networks[o.Index].Spec})
		}
	}
	return all
}

// checkTenantNetworks refuses networks that do not exist, and networks that no pool of the
// tenant has: its pods would wait for an interface that no node gets.
func checkTenantNetworks(w *checker, t *v1alpha1.Tenant) []finding {
	var all []finding
	pools := listPools(t)
	for i, name := range t.Spec.Networks {
		at := field.NewPath("spec", "networks").Index(i)
		if why := w.explainMissing(manifest.KindNetwork, name); why != "" {
			all = append(all, makeFinding(at, "%s", why)...)
			continue
		}
		if !w.hasNetwork(pools, name) {
			all = append(all, makeFinding(at, "no pool of tenant %s has secondary network %s: add it to the secondaryNetworks of pool %s, "+
				"name a pool that has it, or leave it out here", t.Name, name, strings.Join(pools, " or "))...)
		}
	}
	return all
}

// hasNetwork reports whether one of the pools has a network. It returns true for an unknown pool,
// which another rule refuses.
func (w *checker) hasNetwork(pools []string, network string) bool {
	return slices.ContainsFunc(pools, func(name string) bool {
		o, known := w.first[manifest.ID{Kind: manifest.KindPool, Name: name}]
		return !known || slices.Contains(w.Pools[o.Index].Spec.SecondaryNetworks, network)
	})
}

// checkDefinitionNames refuses names that would be ambiguous in a pod: the name of a network,
// and the name of another network in a zone.
func checkDefinitionNames(w *checker) {
	names := map[string]string{}
	for i := range w.Networks {
		names[w.Networks[i].Name] = "secondary network " + w.Networks[i].Name
	}
	for _, i := range sortByAge(w.Networks) {
		n := &w.Networks[i]
		for j := range n.Spec.Zones {
			zone := n.Spec.Zones[j].Zone
			at := field.NewPath("spec", "zones").Index(j).Child("zone")
			name := secondary.ZoneDefinitionName(n.Name, zone)
			switch other, taken := names[name]; {
			case len(validation.IsDNS1123Label(zone)) > 0:
				w.refuse(w.objects[manifest.KindNetwork][i], at, "%q becomes part of a name; write lower-case letters, digits and '-'", zone)
			case taken:
				w.refuse(w.objects[manifest.KindNetwork][i], at, "the network's name for pods in this zone is %s, which is also the name of %s; "+
					"rename one of the networks", name, other)
			default:
				names[name] = fmt.Sprintf("secondary network %s in zone %s", n.Name, zone)
			}
		}
	}
}

// checkNetworkAddresses refuses an address within a network instead of the network's own.
func checkNetworkAddresses(_ *checker, n *v1alpha1.SecondaryNetwork) []finding {
	var all []finding
	spec := field.NewPath("spec")
	for i := range n.Spec.Zones {
		at := spec.Child("zones").Index(i)
		all = append(all, checkMasked(at.Child("cidr"), n.Spec.Zones[i].CIDR)...)
		all = append(all, checkMasked(at.Child("podCIDR"), n.Spec.Zones[i].PodCIDR)...)
	}
	for i, destination := range n.Spec.Routes {
		all = append(all, checkMasked(spec.Child("routes").Index(i), destination)...)
	}
	return all
}

func checkMasked(at *field.Path, cidr string) []finding {
	prefix, err := netip.ParsePrefix(cidr)
	switch {
	case err != nil: // the schema refuses it
		return nil
	case prefix.Addr().Is4In6():
		return makeFinding(at, "%s is an IPv4 network written as IPv6; write it like 10.0.0.0/8", cidr)
	case prefix != prefix.Masked():
		return makeFinding(at, "%s is not a network; write %s", cidr, prefix.Masked())
	}
	return nil
}

// checkReservations refuses reservations that leave no address for pods, or none for the nodes'
// interfaces, which use the rest of the subnet.
func checkReservations(_ *checker, n *v1alpha1.SecondaryNetwork) []finding {
	var all []finding
	for i := range n.Spec.Zones {
		at := field.NewPath("spec", "zones").Index(i)
		r, err := secondary.ReservationOf(n.Name, &n.Spec.Zones[i])
		switch {
		case err != nil: // the schema refuses it
		case r.CIDR.Addr().Is4() && (r.CIDR.Bits() < 16 || r.CIDR.Bits() > 28):
			all = append(all, makeFinding(at.Child("cidr"), "%s is not a subnet of a VPC: subnets are from /16 to /28", r.CIDR)...)
		case r.CountLeft() == 0:
			all = append(all, makeFinding(at.Child("podCIDR"), "%s leaves no address of %s for the nodes' own interfaces; reserve less",
				r.Pods, r.CIDR)...)
		case r.CountUsable() == 0:
			all = append(all, makeFinding(at.Child("podCIDR"), "the VPC reserves all of %s: it takes the first four addresses and the last one of a subnet; "+
				"reserve others", r.Pods)...)
		}
	}
	return all
}

// checkRoutes refuses routes, and the routing table of sbr, in zones without a gateway.
func checkRoutes(_ *checker, n *v1alpha1.SecondaryNetwork) []finding {
	what := "routes lead"
	if len(n.Spec.Routes) == 0 {
		if !n.Spec.SBR {
			return nil
		}
		what = "the routing table of sbr leads"
	}
	var all []finding
	for i := range n.Spec.Zones {
		if n.Spec.Zones[i].Gateway == "" {
			all = append(all, makeFinding(field.NewPath("spec", "zones").Index(i).Child("gateway"),
				"%s to the zone's gateway; set it, in a VPC to the first address of the subnet", what)...)
		}
	}
	return all
}

// checkInterfaces refuses instance types that have fewer network interfaces than the pool's
// nodes need: the node would never become ready. For a pool that names no types it only warns,
// since other requirements may exclude the small ones.
func checkInterfaces(w *checker, p *v1alpha1.Pool) []finding {
	n := len(p.Spec.SecondaryNetworks)
	if n == 0 || !w.isOnAWS(p) {
		return nil
	}
	types, listed := secondary.PossibleTypes(&p.Spec.Instances)
	small := secondary.FindTooSmall(types, n)
	if len(small) == 0 {
		return nil
	}
	limits, _ := secondary.LimitsOf(small[0])
	at := field.NewPath("spec", "secondaryNetworks")
	needs := fmt.Sprintf("a node needs %d network interfaces, its own and one for each of %s", n+1, strings.Join(p.Spec.SecondaryNetworks, ", "))
	if listed {
		return makeFinding(at, "%s, and %s has %d; leave out %s, or networks", needs, small[0], limits.Interfaces, strings.Join(small, ", "))
	}
	return makeWarning(at, "%s, and %s, which the pool may get, has %d; name instanceTypes, or families and sizes, that have enough",
		needs, small[0], limits.Interfaces)
}

// checkWaitForNetworks refuses pools that wait for interfaces outside of AWS, where croft attaches none.
func checkWaitForNetworks(w *checker, p *v1alpha1.Pool) []finding {
	if !p.Spec.WaitForNetworks || resolveClass(&w.platform, p).AWS != nil {
		return nil
	}
	return makeFinding(field.NewPath("spec", "waitForNetworks"),
		"croft attaches interfaces where nodeClass is aws; elsewhere nodes would wait for ever: leave it out")
}

// checkNetworkZones refuses pools whose networks have no zone in common, and pools that
// require a zone that one of their networks does not have.
func checkNetworkZones(w *checker, p *v1alpha1.Pool) []finding {
	var specs []*v1alpha1.SecondaryNetworkSpec
	for _, name := range p.Spec.SecondaryNetworks {
		o, ok := w.first[manifest.ID{Kind: manifest.KindNetwork, Name: name}]
		if !ok {
			return nil // networksExist refuses it
		}
		specs = append(specs, &w.Networks[o.Index].Spec)
	}
	zones := secondary.CommonZones(specs...)
	if len(specs) > 0 && len(zones) == 0 {
		return makeFinding(field.NewPath("spec", "secondaryNetworks"), "%s have no zone in common, so no node can have all of them; "+
			"add a zone to one, or leave one out", strings.Join(p.Spec.SecondaryNetworks, " and "))
	}
	var all []finding
	chosen := false
	for i, r := range p.Spec.Instances.Requirements {
		if len(specs) == 0 || normalizeLabel(r.Key) != corev1.LabelTopologyZone || r.Operator != corev1.NodeSelectorOpIn {
			continue
		}
		chosen = true
		for j, zone := range r.Values {
			if !slices.Contains(zones, zone) {
				all = append(all, makeFinding(field.NewPath("spec", "instances", "requirements").Index(i).Child("values").Index(j),
					"%s: the pool's secondary networks have subnets in %s; leave this zone out, or add it to them", zone, strings.Join(zones, ", "))...)
			}
		}
	}
	if len(specs) > 0 && !chosen && w.isOnAWS(p) {
		all = append(all, makeWarning(field.NewPath("spec", "instances", "requirements"),
			"the pool's secondary networks have subnets in %s, and nodes may come up in other zones; require %s to be in these",
			strings.Join(zones, ", "), corev1.LabelTopologyZone)...)
	}
	return all
}

// isOnAWS reports whether Karpenter's provider for AWS creates the pool's nodes.
func (w *checker) isOnAWS(p *v1alpha1.Pool) bool {
	class := resolveClass(&w.platform, p)
	return class.AWS != nil || class.Ref != nil && class.Ref.Group == awsGroup
}
