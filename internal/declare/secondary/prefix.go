package secondary

import (
	"encoding/binary"
	"net/netip"
	"slices"
)

const (
	// PrefixBits is the length of the prefixes that EC2 assigns to interfaces. For IPv4 it
	// is always /28 (ec2-prefix-eni in the EC2 User Guide).
	PrefixBits = 28
	// PrefixAddresses is the number of addresses in such a prefix. A prefix counts as one
	// address of an interface.
	PrefixAddresses = 1 << (32 - PrefixBits)
)

// CountPrefixes returns how many prefixes of a reservation EC2 can assign to interfaces. It
// excludes prefixes that contain an address that the VPC reserves, or the gateway.
func (r Reservation) CountPrefixes() uint64 {
	if !r.Pods.Addr().Is4() || r.Pods.Bits() > PrefixBits {
		return 0
	}
	all := countAddresses(r.Pods) / PrefixAddresses
	taken := map[netip.Addr]bool{}
	for _, excluded := range r.Excluded() {
		whole, err := excluded.Addr().Prefix(PrefixBits)
		if err == nil {
			taken[whole.Addr()] = true
		}
	}
	return all - min(all, uint64(len(taken)))
}

// spanPrefixes returns the range and the exclusions for whereabouts that cover exactly the
// addresses of some prefixes of a reservation.
func (r Reservation) spanPrefixes(prefixes []netip.Prefix) (span string, exclude []netip.Prefix) {
	own := slices.Clone(prefixes)
	slices.SortFunc(own, func(a, b netip.Prefix) int { return a.Addr().Compare(b.Addr()) })
	begin, end := own[0].Addr(), FindLastAddress(own[len(own)-1])
	at := begin
	for _, p := range own {
		exclude = append(exclude, coverGap(at, p.Addr())...)
		at = FindLastAddress(p).Next()
	}
	for _, reserved := range r.listReserved() {
		if slices.ContainsFunc(own, reserved.Overlaps) {
			exclude = append(exclude, reserved)
		}
	}
	return begin.String() + "-" + netip.PrefixFrom(end, r.CIDR.Bits()).String(), exclude
}

// coverGap returns the IPv4 addresses at or after from and before to, as the fewest networks.
func coverGap(from, to netip.Addr) []netip.Prefix {
	var all []netip.Prefix
	at, end := convertToNumber(from), convertToNumber(to)
	for at < end {
		block := uint64(1)
		for at%(block*2) == 0 && at+block*2 <= end {
			block *= 2
		}
		bits := 32
		for b := block; b > 1; b /= 2 {
			bits--
		}
		all = append(all, netip.PrefixFrom(addOffset(from, at-convertToNumber(from)), bits))
		at += block
	}
	return all
}

// convertToNumber converts an IPv4 address to a number.
func convertToNumber(a netip.Addr) uint64 {
	bytes := a.As4()
	return uint64(binary.BigEndian.Uint32(bytes[:]))
}
