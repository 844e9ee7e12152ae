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

// allotted are addresses and prefixes of a subnet.
type allotted struct{ addresses, prefixes []string }

func (t allotted) size() int { return len(t.addresses) + prefixSize*len(t.prefixes) }

func full(subnet *Subnet) error {
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

func (s *state) pool(subnet *Subnet) (*pool, error) {
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
	p.used[offset(network.Addr(), 1<<(32-network.Bits())-1)] = true
	return p, nil
}

// offset returns the address that is by addresses after a.
func offset(a netip.Addr, by int) netip.Addr {
	b := a.As4()
	binary.BigEndian.PutUint32(b[:], binary.BigEndian.Uint32(b[:])+uint32(by)) //nolint:gosec // less than a subnet has
	return netip.AddrFrom4(b)
}

func among(all []netip.Prefix, address netip.Addr) bool {
	return slices.ContainsFunc(all, func(p netip.Prefix) bool { return p.Contains(address) })
}

func (p *pool) free(a netip.Addr) bool { return !p.used[a] && !among(p.prefixes, a) }

// next returns a free address outside the reservations, and marks it as used. It searches from
// the position from in the subnet, and returns the position after the address, so that a
// released address is not assigned again at once.
func (p *pool) next(from int) (address string, after int, ok bool) {
	size := 1 << (32 - p.network.Bits())
	for i := range size {
		at := (from + i) % size
		a := offset(p.network.Addr(), at)
		if p.free(a) && !among(p.explicit, a) && !among(p.delegated, a) {
			p.used[a] = true
			return a.String(), at + 1, true
		}
	}
	return "", from, false
}

// clear reports whether all addresses of a prefix are free.
func (p *pool) clear(prefix netip.Prefix) bool {
	for i := range prefixSize {
		if !p.free(offset(prefix.Addr(), i)) {
			return false
		}
	}
	return true
}

// nextPrefix returns a free prefix of a reservation of type prefix, or, if the subnet has no
// such reservation, of the rest of the subnet.
func (p *pool) nextPrefix() (string, bool) {
	within := p.delegated
	if len(within) == 0 {
		within = []netip.Prefix{p.network}
	}
	for _, r := range within {
		for at := 0; at < 1<<(32-r.Bits()); at += prefixSize {
			prefix := netip.PrefixFrom(offset(r.Addr(), at), prefixBits)
			overlaps := slices.ContainsFunc(p.explicit, prefix.Overlaps)
			if !overlaps && p.clear(prefix) {
				p.prefixes = append(p.prefixes, prefix)
				return prefix.String(), true
			}
		}
	}
	return "", false
}

// allot finds the requested addresses and prefixes in a subnet, without assigning them yet. With
// primary, it adds an address if w names none.
func (s *state) allot(subnet *Subnet, w Wanted, primary bool) (allotted, error) {
	var got allotted
	p, err := s.pool(subnet)
	if err != nil {
		return got, err
	}
	for _, text := range w.Addresses {
		a, err := netip.ParseAddr(text)
		if err != nil || !p.network.Contains(a) {
			return got, &Invalid{"InvalidParameterValue", fmt.Sprintf("Address %s does not fall within the subnet's address range", text)}
		}
		if !p.free(a) {
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
		if !p.clear(prefix) {
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
		a, after, ok := p.next(subnet.Next)
		if !ok {
			return got, full(subnet)
		}
		subnet.Next = after
		got.addresses = append(got.addresses, a)
	}
	for range w.PrefixCount {
		prefix, ok := p.nextPrefix()
		if !ok {
			return got, full(subnet)
		}
		got.prefixes = append(got.prefixes, prefix)
	}
	return got, nil
}

// Assign gives an interface further addresses and prefixes. With reassign, it takes addresses
// away from other interfaces that have them as secondary addresses.
func (a *Account) Assign(id string, w Wanted, reassign bool) (addresses, prefixes []string, err error) {
	err = a.write(func(s *state) error {
		n := a.find(s, id)
		if n == nil {
			return noInterface(id)
		}
		if n.Attachment != nil {
			more := len(w.Addresses) + w.Count + len(w.Prefixes) + w.PrefixCount
			if err := s.addressRoom(n, n.Attachment.Instance, more); err != nil {
				return err
			}
		}
		subnet := s.subnet(n.Subnet)
		if reassign {
			s.take(n.Subnet, w.Addresses)
		}
		got, err := s.allot(subnet, w, false)
		if err != nil {
			return err
		}
		n.Addresses = append(n.Addresses, got.addresses...)
		n.Prefixes = append(n.Prefixes, got.prefixes...)
		subnet.Free -= got.size()
		addresses, prefixes = got.addresses, got.prefixes
		return nil
	})
	return addresses, prefixes, err
}

// take takes secondary addresses away from the interfaces of a subnet that have them.
func (s *state) take(subnet string, addresses []string) {
	for _, n := range s.Interfaces {
		if n.Subnet != subnet || len(n.Addresses) == 0 {
			continue
		}
		rest := slices.DeleteFunc(slices.Clone(n.Addresses[1:]), func(a string) bool { return slices.Contains(addresses, a) })
		s.subnet(subnet).Free += len(n.Addresses) - 1 - len(rest)
		n.Addresses = append(n.Addresses[:1:1], rest...)
	}
}

// Unassign takes secondary addresses and prefixes away from an interface.
func (a *Account) Unassign(id string, addresses, prefixes []string) error {
	return a.write(func(s *state) error {
		n := a.find(s, id)
		if n == nil {
			return noInterface(id)
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
		s.subnet(n.Subnet).Free += allotted{addresses, prefixes}.size()
		return nil
	})
}
