package service

import (
	"croft.dev/croft/sandbox/internal/cloud/account"
	"croft.dev/croft/sandbox/internal/cloud/wire"
)

type createdCIDR struct {
	Reservation cidrReservation `xml:"subnetCidrReservation"`
}

type deletedCIDR struct {
	Reservation cidrReservation `xml:"deletedSubnetCidrReservation"`
}

type cidrReservations struct {
	Reservations []cidrReservation `xml:"subnetIpv4CidrReservationSet>item"`
}

type cidrReservation struct {
	ID          string    `xml:"subnetCidrReservationId"`
	Subnet      string    `xml:"subnetId"`
	CIDR        string    `xml:"cidr"`
	Kind        string    `xml:"reservationType"`
	Owner       string    `xml:"ownerId"`
	Description string    `xml:"description,omitempty"`
	Tags        []tagItem `xml:"tagSet>item"`
}

func toCIDRReservation(r account.CIDRReservation) cidrReservation {
	return cidrReservation{r.ID, r.Subnet, r.CIDR, r.Kind, account.ID, r.Description, toTagItems(r.Tags)}
}

func (s *Services) createSubnetCIDRReservation(r *wire.Request) (any, error) {
	if err := checkDryRun(r); err != nil {
		return nil, err
	}
	made, err := s.account.ReserveCIDR(account.CIDRReservation{
		Subnet: r.Params.String("SubnetId"), CIDR: r.Params.String("Cidr"), Kind: r.Params.String("ReservationType"),
		Description: r.Params.String("Description"), Tags: readResourceTags(r.Params, "subnet-cidr-reservation"),
	})
	if err != nil {
		return nil, convertError(err)
	}
	return createdCIDR{toCIDRReservation(made)}, nil
}

func (s *Services) getSubnetCIDRReservations(r *wire.Request) (any, error) {
	all, err := s.account.ListCIDRReservations(r.Params.String("SubnetId"), r.Params.ReadFilters())
	if err != nil {
		return nil, convertError(err)
	}
	var out cidrReservations
	for _, reservation := range all {
		out.Reservations = append(out.Reservations, toCIDRReservation(reservation))
	}
	return out, nil
}

func (s *Services) deleteSubnetCIDRReservation(r *wire.Request) (any, error) {
	if err := checkDryRun(r); err != nil {
		return nil, err
	}
	freed, err := s.account.DeleteCIDRReservation(r.Params.String("SubnetCidrReservationId"))
	if err != nil {
		return nil, convertError(err)
	}
	return deletedCIDR{toCIDRReservation(freed)}, nil
}
