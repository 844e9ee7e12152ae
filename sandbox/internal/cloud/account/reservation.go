package account

// CapacityReservation reserves capacity for instances of a type in a zone.
type CapacityReservation struct {
	ID   string `json:"id"`
	Type string `json:"type"`
	Zone string `json:"zone"`
	// Total is the number of reserved instances.
	Total int  `json:"total"`
	Tags  Tags `json:"tags,omitempty"`
}

// ReservedCapacity is a reservation with the number of its free instances.
type ReservedCapacity struct {
	CapacityReservation
	Free int
}

// Reserve reserves capacity, and returns the reservation's ID.
func (a *Account) Reserve(r CapacityReservation) (string, error) {
	r.ID = newID("cr")
	return r.ID, a.changeState(func(s *state) error {
		s.Reservations = append(s.Reservations, &r)
		return nil
	})
}

// ListReservations returns the reservations that match.
func (a *Account) ListReservations(f Filters, ids ...string) []ReservedCapacity {
	if len(ids) > 0 {
		f = Filters{"capacity-reservation-id": ids}
	}
	return readState(a, func(s *state) (out []ReservedCapacity) {
		for _, r := range s.Reservations {
			if f.matches(map[string][]string{
				"capacity-reservation-id": {r.ID}, "instance-type": {r.Type}, "availability-zone": {r.Zone},
				"state": {"active"}, "owner-id": {ID}, "instance-match-criteria": {"targeted"},
			}, r.Tags) {
				out = append(out, ReservedCapacity{*r, r.Total - s.countReserved(r.ID)})
			}
		}
		return out
	})
}

func (s *state) countReserved(id string) (used int) {
	for _, i := range s.Instances {
		if i.Reservation == id && (i.State == Pending || i.State == Running) {
			used++
		}
	}
	return used
}
