package secondary

import (
	"fmt"
	"math"
	"net/netip"

	"croft.dev/croft/api/v1alpha1"
)

// Reservation is the part of a subnet that contains pods' addresses.
type Reservation struct {
	Network, Zone, Subnet string
	CIDR, Pods            netip.Prefix
	// Gateway is the zero value if there is none.
	Gateway netip.Addr
}

// Reservations returns the reservations of a network, in the order of its zones. It omits
// malformed zones, which the schema refuses.
func Reservations(network string, spec *v1alpha1.SecondaryNetworkSpec) []Reservation {
	var all []Reservation
	for i := range spec.Zones {
		if r, err := ReservationOf(network, &spec.Zones[i]); err == nil {
			all = append(all, r)
		}
	}
	return all
}

// ReservationOf parses the reservation of one zone.
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

// Excluded returns the addresses of the reservation that no pod may have, as networks: the
// first four and the last of the subnet, which a VPC reserves (network, router, DNS, future
// use, broadcast), and the gateway.
func (r Reservation) Excluded() []netip.Prefix {
	var all []netip.Prefix
	for _, reserved := range r.listReserved() {
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

// listReserved returns the addresses of the subnet that no pod may have, as disjoint networks.
func (r Reservation) listReserved() []netip.Prefix {
	whole := r.CIDR.Masked()
	bits := whole.Addr().BitLen()
	if whole.Bits() > bits-3 {
		return []netip.Prefix{whole} // fewer than eight addresses: none remain
	}
	first := netip.PrefixFrom(whole.Addr(), bits-2)
	end := netip.PrefixFrom(FindLastAddress(whole), bits)
	all := []netip.Prefix{first}
	if r.Gateway.IsValid() && !first.Contains(r.Gateway) && !end.Contains(r.Gateway) {
		all = append(all, netip.PrefixFrom(r.Gateway, bits))
	}
	return append(all, end)
}

// CountUsable returns the number of pods' addresses in the reservation.
func (r Reservation) CountUsable() uint64 {
	usable := countAddresses(r.Pods)
	for _, excluded := range r.Excluded() {
		usable -= min(usable, countAddresses(excluded))
	}
	return usable
}

// CountLeft returns the number of addresses of the subnet outside the reservation. Nodes'
// interfaces take their own addresses from them.
func (r Reservation) CountLeft() uint64 {
	left := countAddresses(r.CIDR)
	left -= min(left, countAddresses(r.Pods))
	for _, reserved := range r.listReserved() {
		more := countAddresses(reserved)
		if r.Pods.Overlaps(reserved) {
			more -= min(more, countAddresses(r.Pods)) // they are counted already
		}
		left -= min(left, more)
	}
	return left
}

// countAddresses returns the number of addresses of a network, up to the maximum of an int64.
func countAddresses(p netip.Prefix) uint64 {
	bits := p.Addr().BitLen() - p.Bits()
	if bits >= 63 {
		return math.MaxInt64
	}
	return 1 << bits
}

// FindLastAddress returns the last address of a network.
func FindLastAddress(p netip.Prefix) netip.Addr {
	bytes := p.Masked().Addr().AsSlice()
	for bit := p.Bits(); bit < len(bytes)*8; bit++ {
		bytes[bit/8] |= 1 << (7 - bit%8)
	}
	address, _ := netip.AddrFromSlice(bytes)
	return address
}
