package draft

import (
	"net/netip"
	"slices"

	"croft.dev/croft/internal/declare/estate"
)

// FilterNameServers returns the addresses in croft's own policy for DNS that a platform declared.
// croft adds the address of NodeLocal DNSCache itself, as the last IPv4 address.
func FilterNameServers(blocks []string) []string {
	var all []string
	last := -1
	for _, block := range Distinct(blocks) {
		prefix, err := netip.ParsePrefix(block)
		if err != nil {
			continue
		}
		if prefix.Addr().Is4() {
			last = len(all)
		}
		all = append(all, prefix.Addr().String())
	}
	if last >= 0 && all[last] == estate.NodeLocalDNS.String() {
		all = slices.Delete(all, last, last+1)
	}
	return all
}
