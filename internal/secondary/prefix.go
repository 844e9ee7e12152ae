package secondary

import (
	"encoding/binary"
	"net/netip"
	"slices"
)

const (
	// PrefixBits is how long the prefixes are that EC2 gives to interfaces: always /28 for
	// IPv4 (ec2-prefix-eni in the EC2 User Guide).
	PrefixBits = 28
	// PrefixAddresses is how many addresses such a prefix has. It takes the place of one
	// among an interface's addresses.
	PrefixAddresses = 1 << (32 - PrefixBits)
)

// PrefixesIn says how many prefixes a reservation has that EC2 can give to interfaces: none
// of those with an address that the VPC keeps, or that the gateway has.
func (r Reservation) PrefixesIn() uint64 {
	if !r.Pods.Addr().Is4() || r.Pods.Bits() > PrefixBits {
		return 0
	}
	all := size(r.Pods) / PrefixAddresses
	taken := map[netip.Addr]bool{}
	for _, excluded := range r.Excluded() {
		whole, err := excluded.Addr().Prefix(PrefixBits)
		if err == nil {
			taken[whole.Addr()] = true
		}
	}
	return all - min(all, uint64(len(taken)))
}

// within are the range and the exclusions, as whereabouts reads them, of the addresses that
// some prefixes of a reservation have.
func (r Reservation) within(prefixes []netip.Prefix) (span string, exclude []netip.Prefix) {
	own := slices.Clone(prefixes)
	slices.SortFunc(own, func(a, b netip.Prefix) int { return a.Addr().Compare(b.Addr()) })
	begin, end := own[0].Addr(), last(own[len(own)-1])
	at := begin
	for _, p := range own {
		exclude = append(exclude, gap(at, p.Addr())...)
		at = last(p).Next()
	}
	for _, reserved := range r.reserved() {
		if slices.ContainsFunc(own, reserved.Overlaps) {
			exclude = append(exclude, reserved)
		}
	}
	return begin.String() + "-" + netip.PrefixFrom(end, r.CIDR.Bits()).String(), exclude
}

// gap are the IPv4 addresses from one on and before another, as few networks.
func gap(from, to netip.Addr) []netip.Prefix {
	var all []netip.Prefix
	at, end := number(from), number(to)
	for at < end {
		block := uint64(1)
		for at%(block*2) == 0 && at+block*2 <= end {
			block *= 2
		}
		bits := 32
		for b := block; b > 1; b /= 2 {
			bits--
		}
		all = append(all, netip.PrefixFrom(plus(from, at-number(from)), bits))
		at += block
	}
	return all
}

// number is an IPv4 address as a number.
func number(a netip.Addr) uint64 {
	bytes := a.As4()
	return uint64(binary.BigEndian.Uint32(bytes[:]))
}
