package estate

import (
	"cmp"
	"net/netip"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/manifest"
)

// subnet is the network of one zone of a SecondaryNetwork. Its age is the position of the
// SecondaryNetwork by age.
type subnet struct {
	owner  manifest.Object
	age    int
	zone   int
	prefix netip.Prefix
}

func (s subnet) fieldPath() *field.Path {
	return field.NewPath("spec", "zones").Index(s.zone).Child("cidr")
}

// checkNetworkOverlaps refuses networks that share addresses: the route of a packet between them
// would be ambiguous. The networks are sorted by address, so a network can only overlap with
// networks that are still open.
func checkNetworkOverlaps(w *checker) {
	var all []subnet
	for age, i := range sortByAge(w.Networks) {
		for zone, z := range w.Networks[i].Spec.Zones {
			if prefix, err := netip.ParsePrefix(z.CIDR); err == nil {
				all = append(all, subnet{w.objects[manifest.KindNetwork][i], age, zone, prefix.Masked()})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b subnet) int {
		return cmp.Or(a.prefix.Addr().Compare(b.prefix.Addr()), cmp.Compare(a.prefix.Bits(), b.prefix.Bits()))
	})
	var open []subnet
	for _, s := range all {
		for len(open) > 0 && !open[len(open)-1].prefix.Overlaps(s.prefix) {
			open = open[:len(open)-1]
		}
		if len(open) > 0 {
			earlier, later := open[len(open)-1], s
			if earlier.age > later.age {
				earlier, later = later, earlier
			}
			w.refuse(later.owner, later.fieldPath(), "%s overlaps with %s of secondary network %s%s; networks must not share addresses",
				later.prefix, earlier.prefix, earlier.owner.Name, w.FormatLocation(earlier.owner))
		}
		open = append(open, s)
	}
}

// checkGateways refuses a gateway within the addresses for pods.
func checkGateways(_ *checker, n *v1alpha1.SecondaryNetwork) []finding {
	var all []finding
	for i, z := range n.Spec.Zones {
		gateway, errGateway := netip.ParseAddr(z.Gateway)
		pods, errPods := netip.ParsePrefix(z.PodCIDR)
		if errGateway == nil && errPods == nil && pods.Contains(gateway) {
			all = append(all, makeFinding(field.NewPath("spec", "zones").Index(i).Child("gateway"),
				"%s is one of the pods' addresses in %s; reserve others for the pods, or name the right gateway", gateway, pods)...)
		}
	}
	return all
}
