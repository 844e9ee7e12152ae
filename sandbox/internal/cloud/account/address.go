package account

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
)

// prefixBits is the length of the prefixes of interfaces.
const prefixBits = 28

// prefixSize is the number of addresses in such a prefix.
const prefixSize = 1 << (32 - prefixBits)

// Wanted are the addresses and prefixes that a call requests, some by value, others by number.
type Wanted struct {
	Addresses []string
	// Count is the number of further addresses.
	Count    int
	Prefixes []string
	// PrefixCount is the number of further prefixes.
	PrefixCount int
}

// allotment are addresses and prefixes of a subnet.
type allotment struct{ addresses, prefixes []string }

func (t allotment) countAddresses() int { return len(t.addresses) + prefixSize*len(t.prefixes) }

func newFullError(subnet *Subnet) error {
	return &Invalid{"InsufficientFreeAddressesInSubnet", fmt.Sprintf("The specified subnet does not have enough free addresses to satisfy the request: %s", subnet.ID)}
}

// pool is the used and the reserved addresses of a subnet.
type pool struct {
	network netip.Prefix
	// used are the addresses of interfaces and AWS's own, prefixes the delegated prefixes.
	used     map[netip.Addr]bool
	prefixes []netip.Prefix
	// explicit and delegated are the reservations of the two kinds.
	explicit, delegated []netip.Prefix
}

func (s *state) buildPool(subnet *Subnet) (*pool, error) {
	network, err := netip.ParsePrefix(subnet.CIDR)
	if err != nil {
		return nil, err
	}
	p := &pool{network: network, used: map[netip.Addr]bool{}}
	for _, n := range s.Interfaces {
		if n.Subnet != subnet.ID {
			continue
		}
		for _, text := range n.Addresses {
			p.used[netip.MustParseAddr(text)] = true
		}
		for _, text := range n.Prefixes {
			p.prefixes = append(p.prefixes, netip.MustParsePrefix(text))
		}
	}
	for _, r := range s.CIDRReservations {
		switch {
		case r.Subnet != subnet.ID:
		case r.Kind == Explicit:
			p.explicit = append(p.explicit, netip.MustParsePrefix(r.CIDR))
		default:
			p.delegated = append(p.delegated, netip.MustParsePrefix(r.CIDR))
		}
	}
	// The first four addresses of a subnet and the last one are AWS's.
	first := network.Addr()
	for range 4 {
		p.used[first] = true
		first = first.Next()
	}
	p.used[addOffset(network.Addr(), 1<<(32-network.Bits())-1)] = true
	return p, nil
}

// addOffset returns the address that is by addresses after a.
func addOffset(a netip.Addr, by int) netip.Addr {
	b := a.As4()
	binary.BigEndian.PutUint32(b[:], binary.BigEndian.Uint32(b[:])+uint32(by)) //nolint:gosec // less than a subnet has
	return netip.AddrFrom4(b)
}

func containsAddress(all []netip.Prefix, address netip.Addr) bool {
	return slices.ContainsFunc(all, func(p netip.Prefix) bool { return p.Contains(address) })
}

func (p *pool) isFree(a netip.Addr) bool { return !p.used[a] && !containsAddress(p.prefixes, a) }

// takeAddress returns a free address outside the reservations, and marks it as used. It searches from
// the position from in the subnet, and returns the position after the address, so that a
// released address is not assigned again at once.
func (p *pool) takeAddress(from int) (address string, after int, ok bool) {
	size := 1 << (32 - p.network.Bits())
	for i := range size {
		at := (from + i) % size
		a := addOffset(p.network.Addr(), at)
		if p.isFree(a) && !containsAddress(p.explicit, a) && !containsAddress(p.delegated, a) {
			p.used[a] = true
			return a.String(), at + 1, true
		}
	}
	return "", from, false
}

// isPrefixFree reports whether all addresses of a prefix are free.
func (p *pool) isPrefixFree(prefix netip.Prefix) bool {
	for i := range prefixSize {
		if !p.isFree(addOffset(prefix.Addr(), i)) {
			return false
		}
	}
	return true
}

// takePrefix returns a free prefix of a reservation of type prefix, or, if the subnet has no
// such reservation, of the rest of the subnet.
func (p *pool) takePrefix() (string, bool) {
	within := p.delegated
	if len(within) == 0 {
		within = []netip.Prefix{p.network}
	}
	for _, r := range within {
		for at := 0; at < 1<<(32-r.Bits()); at += prefixSize {
			prefix := netip.PrefixFrom(addOffset(r.Addr(), at), prefixBits)
			overlaps := slices.ContainsFunc(p.explicit, prefix.Overlaps)
			if !overlaps && p.isPrefixFree(prefix) {
				p.prefixes = append(p.prefixes, prefix)
				return prefix.String(), true
			}
		}
	}
	return "", false
}

// allotAddresses finds the requested addresses and prefixes in a subnet, without assigning them yet. With
// primary, it adds an address if w names none.
func (s *state) allotAddresses(subnet *Subnet, w Wanted, primary bool) (allotment, error) {
	var got allotment
	p, err := s.buildPool(subnet)
	if err != nil {
		return got, err
	}
	for _, text := range w.Addresses {
		a, err := netip.ParseAddr(text)
		if err != nil || !p.network.Contains(a) {
			return got, &Invalid{"InvalidParameterValue", fmt.Sprintf("Address %s does not fall within the subnet's address range", text)}
		}
		if !p.isFree(a) {
			return got, &Invalid{"InvalidIPAddress.InUse", fmt.Sprintf("Address %s is in use.", text)}
		}
		p.used[a] = true
		got.addresses = append(got.addresses, text)
	}
	for _, text := range w.Prefixes {
		prefix, err := netip.ParsePrefix(text)
		if err != nil || prefix.Bits() != prefixBits || prefix.Masked() != prefix || !p.network.Contains(prefix.Addr()) {
			return got, &Invalid{"InvalidParameterValue", fmt.Sprintf("The prefix %s is not a /%d of the subnet", text, prefixBits)}
		}
		if !p.isPrefixFree(prefix) {
			return got, &Invalid{"InvalidParameterValue", fmt.Sprintf("The prefix %s, or an address of it, is in use.", text)}
		}
		p.prefixes = append(p.prefixes, prefix)
		got.prefixes = append(got.prefixes, text)
	}
	count := w.Count
	if primary && len(w.Addresses) == 0 {
		count++
	}
	for range count {
		a, after, ok := p.takeAddress(subnet.Next)
		if !ok {
			return got, newFullError(subnet)
		}
		subnet.Next = after
		got.addresses = append(got.addresses, a)
	}
	for range w.PrefixCount {
		prefix, ok := p.takePrefix()
		if !ok {
			return got, newFullError(subnet)
		}
		got.prefixes = append(got.prefixes, prefix)
	}
	return got, nil
}

// AssignAddresses gives an interface further addresses and prefixes. With reassign, it takes addresses
// away from other interfaces that have them as secondary addresses.
func (a *Account) AssignAddresses(id string, w Wanted, reassign bool) (addresses, prefixes []string, err error) {
	err = a.changeState(func(s *state) error {
		n := a.findVisible(s, id)
		if n == nil {
			return newNoInterfaceError(id)
		}
		if n.Attachment != nil {
			more := len(w.Addresses) + w.Count + len(w.Prefixes) + w.PrefixCount
			if err := s.checkAddressRoom(n, n.Attachment.Instance, more); err != nil {
				return err
			}
		}
		subnet := s.findSubnet(n.Subnet)
		if reassign {
			s.takeAway(n.Subnet, w.Addresses)
		}
		got, err := s.allotAddresses(subnet, w, false)
		if err != nil {
			return err
		}
		n.Addresses = append(n.Addresses, got.addresses...)
		n.Prefixes = append(n.Prefixes, got.prefixes...)
		subnet.Free -= got.countAddresses()
		addresses, prefixes = got.addresses, got.prefixes
		return nil
	})
	return addresses, prefixes, err
}

// takeAway takes secondary addresses away from the interfaces of a subnet that have them.
func (s *state) takeAway(subnet string, addresses []string) {
	for _, n := range s.Interfaces {
		if n.Subnet != subnet || len(n.Addresses) == 0 {
			continue
		}
		rest := slices.DeleteFunc(slices.Clone(n.Addresses[1:]), func(a string) bool { return slices.Contains(addresses, a) })
		s.findSubnet(subnet).Free += len(n.Addresses) - 1 - len(rest)
		n.Addresses = append(n.Addresses[:1:1], rest...)
	}
}

// UnassignAddresses takes secondary addresses and prefixes away from an interface.
func (a *Account) UnassignAddresses(id string, addresses, prefixes []string) error {
	return a.changeState(func(s *state) error {
		n := a.findVisible(s, id)
		if n == nil {
			return newNoInterfaceError(id)
		}
		for _, text := range addresses {
			if at := slices.Index(n.Addresses, text); at <= 0 {
				return &Invalid{"InvalidParameterValue", fmt.Sprintf("Some of the specified addresses are not assigned to interface %s", id)}
			}
		}
		for _, text := range prefixes {
			if !slices.Contains(n.Prefixes, text) {
				return &Invalid{"InvalidParameterValue", fmt.Sprintf("Some of the specified prefixes are not assigned to interface %s", id)}
			}
		}
		n.Addresses = slices.DeleteFunc(slices.Clone(n.Addresses), func(t string) bool { return slices.Contains(addresses, t) })
		n.Prefixes = slices.DeleteFunc(slices.Clone(n.Prefixes), func(t string) bool { return slices.Contains(prefixes, t) })
		s.findSubnet(n.Subnet).Free += allotment{addresses, prefixes}.countAddresses()
		return nil
	})
}
