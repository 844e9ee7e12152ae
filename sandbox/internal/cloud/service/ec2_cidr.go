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

func cidrOf(r account.CIDRReservation) cidrReservation {
	return cidrReservation{r.ID, r.Subnet, r.CIDR, r.Kind, account.ID, r.Description, tagItems(r.Tags)}
}

func (s *Services) createSubnetCIDRReservation(r *wire.Request) (any, error) {
	if err := dryRun(r); err != nil {
		return nil, err
	}
	made, err := s.account.ReserveCIDR(account.CIDRReservation{
		Subnet: r.Params.String("SubnetId"), CIDR: r.Params.String("Cidr"), Kind: r.Params.String("ReservationType"),
		Description: r.Params.String("Description"), Tags: tagsOf(r.Params, "subnet-cidr-reservation"),
	})
	if err != nil {
		return nil, refusal(err)
	}
	return createdCIDR{cidrOf(made)}, nil
}

func (s *Services) getSubnetCIDRReservations(r *wire.Request) (any, error) {
	all, err := s.account.CIDRReservations(r.Params.String("SubnetId"), r.Params.Filters())
	if err != nil {
		return nil, refusal(err)
	}
	var out cidrReservations
	for _, reservation := range all {
		out.Reservations = append(out.Reservations, cidrOf(reservation))
	}
	return out, nil
}

func (s *Services) deleteSubnetCIDRReservation(r *wire.Request) (any, error) {
	if err := dryRun(r); err != nil {
		return nil, err
	}
	freed, err := s.account.FreeCIDR(r.Params.String("SubnetCidrReservationId"))
	if err != nil {
		return nil, refusal(err)
	}
	return deletedCIDR{cidrOf(freed)}, nil
}
