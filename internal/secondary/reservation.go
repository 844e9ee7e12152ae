package secondary

import (
	"fmt"
	"math"
	"net/netip"

	"croft.dev/croft/api/v1alpha1"
)

// Reservation is the part of a subnet that pods' addresses come from.
type Reservation struct {
	Network, Zone, Subnet string
	CIDR, Pods            netip.Prefix
	// Gateway is zero if there is none.
	Gateway netip.Addr
}

// Reservations are those of a network, in the order of its zones. Zones that are not
// well formed are left out: the schema refuses them.
func Reservations(network string, spec *v1alpha1.SecondaryNetworkSpec) []Reservation {
	var all []Reservation
	for i := range spec.Zones {
		if r, err := ReservationOf(network, &spec.Zones[i]); err == nil {
			all = append(all, r)
		}
	}
	return all
}

// ReservationOf reads the reservation of one zone.
func ReservationOf(network string, z *v1alpha1.SecondaryNetworkZone) (Reservation, error) {
	r := Reservation{Network: network, Zone: z.Zone, Subnet: z.Subnet}
	var err error
	if r.CIDR, err = netip.ParsePrefix(z.CIDR); err != nil {
		return r, fmt.Errorf("cidr: %w", err)
	}
	if r.Pods, err = netip.ParsePrefix(z.PodCIDR); err != nil {
		return r, fmt.Errorf("podCIDR: %w", err)
	}
	if z.Gateway != "" {
		if r.Gateway, err = netip.ParseAddr(z.Gateway); err != nil {
			return r, fmt.Errorf("gateway: %w", err)
		}
	}
	return r, nil
}

// Excluded are the addresses of the reservation that no pod may have, as networks: the
// first four and the last of the subnet, which a VPC keeps for itself (the network, its
// router, its DNS, one for later, and the broadcast address), and the gateway.
func (r Reservation) Excluded() []netip.Prefix {
	var all []netip.Prefix
	for _, reserved := range r.reserved() {
		switch {
		case !r.Pods.Overlaps(reserved):
		case reserved.Bits() < r.Pods.Bits():
			return []netip.Prefix{r.Pods.Masked()}
		default:
			all = append(all, reserved)
		}
	}
	return all
}

// reserved are the addresses of the subnet that no pod may have; none holds another.
func (r Reservation) reserved() []netip.Prefix {
	whole := r.CIDR.Masked()
	bits := whole.Addr().BitLen()
	if whole.Bits() > bits-3 {
		return []netip.Prefix{whole} // fewer than eight addresses: nothing to share
	}
	first := netip.PrefixFrom(whole.Addr(), bits-2)
	end := netip.PrefixFrom(last(whole), bits)
	all := []netip.Prefix{first}
	if r.Gateway.IsValid() && !first.Contains(r.Gateway) && !end.Contains(r.Gateway) {
		all = append(all, netip.PrefixFrom(r.Gateway, bits))
	}
	return append(all, end)
}

// Usable is how many pods the reservation has addresses for.
func (r Reservation) Usable() uint64 {
	usable := size(r.Pods)
	for _, excluded := range r.Excluded() {
		usable -= min(usable, size(excluded))
	}
	return usable
}

// Left is how many addresses of the subnet are outside of the reservation: nodes'
// interfaces take their own from them.
func (r Reservation) Left() uint64 {
	left := size(r.CIDR)
	left -= min(left, size(r.Pods))
	for _, reserved := range r.reserved() {
		more := size(reserved)
		if r.Pods.Overlaps(reserved) {
			more -= min(more, size(r.Pods)) // they are counted
		}
		left -= min(left, more)
	}
	return left
}

// size is the number of a network's addresses, at most what fits.
func size(p netip.Prefix) uint64 {
	bits := p.Addr().BitLen() - p.Bits()
	if bits >= 63 {
		return math.MaxInt64
	}
	return 1 << bits
}

// last is the last address of a network.
func last(p netip.Prefix) netip.Addr {
	bytes := p.Masked().Addr().AsSlice()
	for bit := p.Bits(); bit < len(bytes)*8; bit++ {
		bytes[bit/8] |= 1 << (7 - bit%8)
	}
	address, _ := netip.AddrFromSlice(bytes)
	return address
}
