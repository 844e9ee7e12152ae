package estate

import (
	"cmp"
	"net/netip"
	"slices"

	"croft.dev/croft/api/v1alpha1"
)

// nat64 is the prefix of the IPv6 addresses at which a NAT64 gateway serves IPv4 addresses (RFC
// 6052): a pod with IPv6 only reaches the metadata addresses there.
var nat64 = netip.MustParsePrefix("64:ff9b::/96")

// ListMetadataAddresses returns the platform's metadata addresses: first IPv4, then IPv6, then the NAT64
// addresses of the first. It skips invalid addresses, which are possible if no schema has
// validated them.
func ListMetadataAddresses(n *v1alpha1.PlatformNetwork) []netip.Addr {
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
			translated = append(translated, translateNAT64(address))
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

func translateNAT64(address netip.Addr) netip.Addr {
	whole, v4 := nat64.Addr().As16(), address.As4()
	copy(whole[12:], v4[:])
	return netip.AddrFrom16(whole)
}
