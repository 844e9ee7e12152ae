package account

import (
	"fmt"
	"net/netip"
	"slices"
)

// Explicit and Prefix are the kinds of reservation: EC2 assigns addresses of an explicit one
// only if a call names them, and only prefixes of the other.
const (
	Explicit = "explicit"
	Prefix   = "prefix"
)

// CIDRReservation is a range of a subnet that is reserved for a purpose.
type CIDRReservation struct {
	ID          string `json:"id"`
	Subnet      string `json:"subnet"`
	CIDR        string `json:"cidr"`
	Kind        string `json:"kind"`
	Description string `json:"description,omitempty"`
	Tags        Tags   `json:"tags,omitempty"`
}

// ReserveCIDR reserves a range of a subnet.
func (a *Account) ReserveCIDR(r CIDRReservation) (CIDRReservation, error) {
	r.ID = newID("scr")
	return r, a.changeState(func(s *state) error {
		subnet := s.findSubnet(r.Subnet)
		if subnet == nil {
			return newNoSubnetError(r.Subnet)
		}
		if r.Kind != Explicit && r.Kind != Prefix {
			return &Invalid{"InvalidParameterValue", fmt.Sprintf("Value (%s) for parameter reservationType is invalid.", r.Kind)}
		}
		cidr, err := netip.ParsePrefix(r.CIDR)
		within, err2 := netip.ParsePrefix(subnet.CIDR)
		if err != nil || err2 != nil || cidr.Masked() != cidr || cidr.Bits() < within.Bits() || !within.Contains(cidr.Addr()) {
			return &Invalid{"InvalidParameterValue", fmt.Sprintf("The CIDR %s is not within the subnet's %s", r.CIDR, subnet.CIDR)}
		}
		for _, other := range s.CIDRReservations {
			if other.Subnet == r.Subnet && netip.MustParsePrefix(other.CIDR).Overlaps(cidr) {
				return &Invalid{"InvalidParameterValue", fmt.Sprintf("The CIDR %s overlaps the reservation %s", r.CIDR, other.ID)}
			}
		}
		s.CIDRReservations = append(s.CIDRReservations, &r)
		return nil
	})
}

// ListCIDRReservations returns the reservations of a subnet that match.
func (a *Account) ListCIDRReservations(subnet string, f Filters) ([]CIDRReservation, error) {
	if readState(a, func(s *state) bool { return s.findSubnet(subnet) == nil }) {
		return nil, newNoSubnetError(subnet)
	}
	return readState(a, func(s *state) (out []CIDRReservation) {
		for _, r := range s.CIDRReservations {
			if r.Subnet == subnet && f.matches(map[string][]string{"reservationType": {r.Kind}, "cidr": {r.CIDR}}, r.Tags) {
				out = append(out, *r)
			}
		}
		return out
	}), nil
}

// DeleteCIDRReservation deletes a reservation, and returns it.
func (a *Account) DeleteCIDRReservation(id string) (freed CIDRReservation, err error) {
	err = a.changeState(func(s *state) error {
		at := slices.IndexFunc(s.CIDRReservations, func(r *CIDRReservation) bool { return r.ID == id })
		if at < 0 {
			return &Invalid{"InvalidSubnetCidrReservationID.NotFound", fmt.Sprintf("The subnet CIDR reservation ID '%s' does not exist", id)}
		}
		freed = *s.CIDRReservations[at]
		s.CIDRReservations = slices.Delete(s.CIDRReservations, at, at+1)
		return nil
	})
	return freed, err
}

// AddSubnet creates a subnet in a zone with tags, and returns it. Node classes find it only by
// its tags.
func (a *Account) AddSubnet(zone, cidr string, tags Tags) (made Subnet, err error) {
	err = a.changeState(func(s *state) error {
		prefix, err := netip.ParsePrefix(cidr)
		if err != nil || !prefix.Addr().Is4() {
			return fmt.Errorf("%q is no IPv4 network", cidr)
		}
		if !slices.Contains(a.Zones, zone) {
			return fmt.Errorf("there is no zone %s", zone)
		}
		for _, other := range s.Subnets {
			if taken, err := netip.ParsePrefix(other.CIDR); err == nil && taken.Overlaps(prefix) {
				return fmt.Errorf("%s overlaps %s, %s", cidr, other.ID, other.CIDR)
			}
		}
		const kept = 5 // AWS's own addresses in each subnet
		subnet := &Subnet{ID: newID("subnet"), Zone: zone, ZoneID: a.formatZoneID(zone), VPC: vpc, CIDR: cidr, Free: 1<<(32-prefix.Bits()) - kept, Tags: tags}
		s.Subnets = append(s.Subnets, subnet)
		made = *subnet
		return nil
	})
	return made, err
}
