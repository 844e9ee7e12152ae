package estate

import (
	"cmp"
	"net/netip"
	"slices"

	"croft.dev/croft/api/v1alpha1"
)

// nat64 is the prefix below which a NAT64 gateway serves every IPv4 address
// (RFC 6052): a pod that has only IPv6 reaches them there.
var nat64 = netip.MustParsePrefix("64:ff9b::/96")

// Metadata are the platform's metadata addresses, those of IPv4 first, and after
// the others those at which NAT64 serves the first. An address that no schema has
// seen and that is none is left out.
func Metadata(n *v1alpha1.PlatformNetwork) []netip.Addr {
	named := n.MetadataAddresses
	if len(named) == 0 {
		named = v1alpha1.DefaultMetadataAddresses()
	}
	var all, translated []netip.Addr
	for _, name := range named {
		address, err := netip.ParseAddr(name)
		if err != nil {
			continue
		}
		address = address.Unmap()
		all = append(all, address)
		if address.Is4() {
			translated = append(translated, throughNAT64(address))
		}
	}
	slices.SortStableFunc(all, func(a, b netip.Addr) int { return cmp.Compare(a.BitLen(), b.BitLen()) })
	all = append(all, translated...)
	seen := map[netip.Addr]bool{}
	return slices.DeleteFunc(all, func(a netip.Addr) bool {
		again := seen[a]
		seen[a] = true
		return again
	})
}

func throughNAT64(address netip.Addr) netip.Addr {
	whole, v4 := nat64.Addr().As16(), address.As4()
	copy(whole[12:], v4[:])
	return netip.AddrFrom16(whole)
}
