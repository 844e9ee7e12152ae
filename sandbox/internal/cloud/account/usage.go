package account

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"croft.dev/croft/sandbox/internal/instancetypes"
)

// Usage is the use of an instance that AWS charges: from its state running until it shuts down.
type Usage struct {
	Instance string `json:"instance"`
	Type     string `json:"type"`
	Zone     string `json:"zone"`
	Capacity string `json:"capacity"`
	Tags     Tags   `json:"tags"`

	From time.Time `json:"from"`
	// Until is zero while the instance runs.
	Until time.Time `json:"until,omitzero"`
}

func (i *Instance) toUsage(until time.Time) Usage {
	return Usage{Instance: i.ID, Type: i.Type, Zone: i.Zone, Capacity: i.Capacity, Tags: i.Tags, From: i.RunsAt, Until: until}
}

// ListUsage returns the use of all instances since the creation of the account, the earliest first.
func (a *Account) ListUsage() []Usage {
	return readState(a, func(s *state) []Usage {
		out := slices.Clone(s.Used)
		for _, i := range s.Instances {
			if i.State == Running {
				out = append(out, i.toUsage(time.Time{}))
			}
		}
		slices.SortFunc(out, func(x, y Usage) int { return cmp.Or(x.From.Compare(y.From), cmp.Compare(x.Instance, y.Instance)) })
		return out
	})
}

// spotPrice is the price of a type's spot instances from a time on.
type spotPrice struct {
	Type  string    `json:"type"`
	From  time.Time `json:"from"`
	Price float64   `json:"price"`
}

// SetSpotPrice changes the price of an hour of a type's spot instances, in all zones.
func (a *Account) SetSpotPrice(instanceType string, price float64) error {
	if FindType(instanceType) == nil {
		return fmt.Errorf("there is no instance type %s", instanceType)
	}
	return a.changeState(func(s *state) error {
		s.SpotPrices = append(s.SpotPrices, spotPrice{instanceType, a.now(), price})
		return nil
	})
}

// FindPrice returns the price of an hour of a type at a time, by its capacity type.
func (a *Account) FindPrice(t *Type, capacity string, at time.Time) float64 {
	if capacity != Spot {
		return t.Price
	}
	return readState(a, func(s *state) float64 {
		price := t.Price * instancetypes.SpotDiscount
		for _, change := range s.SpotPrices {
			if change.Type == t.Name && !change.From.After(at) {
				price = change.Price
			}
		}
		return price
	})
}
