package account

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"
)

// State is where an instance stands.
type State string

// The states of an instance, and their numbers.
const (
	Pending      State = "pending"
	Running      State = "running"
	ShuttingDown State = "shutting-down"
	Terminated   State = "terminated"
)

// Code is the state's number.
func (s State) Code() int {
	return map[State]int{Pending: 0, Running: 16, ShuttingDown: 32, Terminated: 48}[s]
}

// OnDemand and Spot are how an instance is bought.
const (
	OnDemand = "on-demand"
	Spot     = "spot"
)

// Instance is one machine.
type Instance struct {
	ID     string `json:"id"`
	Type   string `json:"type"`
	Arch   string `json:"arch"`
	Zone   string `json:"zone"`
	ZoneID string `json:"zoneID"`
	Subnet string `json:"subnet"`
	VPC    string `json:"vpc"`
	IP     string `json:"ip"`
	// Capacity is how it was bought.
	Capacity    string `json:"capacity"`
	SpotRequest string `json:"spotRequest,omitempty"`
	Reservation string `json:"reservation,omitempty"`
	// Template is the ID of the launch template that it was started by, and Data
	// what that said.
	Template string       `json:"template"`
	Data     TemplateData `json:"data"`
	Tags     Tags         `json:"tags"`
	State    State        `json:"state"`
	// Reason is why it has ended.
	Reason string `json:"reason,omitempty"`

	Launched    time.Time `json:"launched"`
	RunsAt      time.Time `json:"runsAt"`
	RegistersAt time.Time `json:"registersAt"`
	ReadyAt     time.Time `json:"readyAt"`
	EndsAt      time.Time `json:"endsAt,omitzero"`
	ReclaimedAt time.Time `json:"reclaimedAt,omitzero"`

	// Registered says that it has become a node, and Left that the node has been taken
	// away. Lost says that it never registers, Unready that it never gets ready.
	Registered bool `json:"registered"`
	Left       bool `json:"left"`
	Lost       bool `json:"lost,omitempty"`
	Unready    bool `json:"unready,omitempty"`
	// Untainted registers without the taint of nodes that are not registered.
	Untainted bool `json:"untainted,omitempty"`
}

// DNSName is what it is called, and its node.
func (i *Instance) DNSName(region string) string {
	name := []byte("ip-" + i.IP)
	for n, c := range name {
		if c == '.' {
			name[n] = '-'
		}
	}
	return fmt.Sprintf("%s.%s.compute.internal", name, region)
}

// ProviderID is what its node says of where it comes from.
func (i *Instance) ProviderID() string { return "aws:///" + i.Zone + "/" + i.ID }

// keeps is how long one that has ended can still be seen.
const keeps = time.Hour

// Instances are those that match, the oldest first.
func (a *Account) Instances(f Filters, ids ...string) []Instance {
	return read(a, func(s *state) (out []Instance) {
		for _, i := range s.Instances {
			if len(ids) > 0 && !slices.Contains(ids, i.ID) {
				continue
			}
			if f.match(map[string][]string{
				"instance-id": {i.ID}, "instance-state-name": {string(i.State)}, "instance-type": {i.Type},
				"availability-zone": {i.Zone}, "subnet-id": {i.Subnet}, "private-dns-name": {i.DNSName(a.Region)},
			}, i.Tags) {
				out = append(out, *i)
			}
		}
		slices.SortFunc(out, func(x, y Instance) int {
			return cmp.Or(x.Launched.Compare(y.Launched), cmp.Compare(x.ID, y.ID))
		})
		return out
	})
}

// Instance finds one by its ID; nil if there is none.
func (a *Account) Instance(id string) *Instance {
	return read(a, func(s *state) *Instance { return copied(s.Instances[id]) })
}

// Tag adds tags to an instance or a network interface, and says whether it is there.
func (a *Account) Tag(id string, tags Tags) (found bool, err error) {
	err = a.write(func(s *state) error {
		var standing *Tags
		if i := s.Instances[id]; i != nil {
			standing = &i.Tags
		} else if n := a.find(s, id); n != nil {
			standing = &n.Tags
		}
		if found = standing != nil; !found {
			return nil
		}
		fresh := Tags{}
		maps.Copy(fresh, *standing)
		maps.Copy(fresh, tags)
		*standing = fresh
		return nil
	})
	return found, err
}

// Terminate ends instances. Those that have ended stay as they are.
func (a *Account) Terminate(ids ...string) error {
	return a.write(func(s *state) error {
		for _, id := range ids {
			if i := s.Instances[id]; i != nil {
				a.end(s, i, "User initiated")
			}
		}
		return nil
	})
}

func (a *Account) end(s *state, i *Instance, reason string) {
	if i.State == ShuttingDown || i.State == Terminated {
		return
	}
	i.State, i.Reason = ShuttingDown, reason
	i.EndsAt = a.now().Add(a.scaled(untilTerminated.draw()))
	a.tell(s, stateChanged(a, i))
}

// Interrupt has a spot instance taken away after the two minutes in which it can
// still be left in order.
func (a *Account) Interrupt(id string) error {
	return a.write(func(s *state) error {
		i := s.Instances[id]
		switch {
		case i == nil:
			return fmt.Errorf("there is no instance %s", id)
		case i.Capacity != Spot:
			return fmt.Errorf("instance %s is %s: only spot instances are taken away", id, i.Capacity)
		case i.State != Pending && i.State != Running:
			return fmt.Errorf("instance %s is %s", id, i.State)
		}
		i.ReclaimedAt = a.now().Add(a.scaled(spotNotice))
		a.tell(s, spotWarning(a, i))
		return nil
	})
}

// Next is when the next thing happens by itself; the zero time if nothing will.
func (a *Account) Next() time.Time {
	return read(a, func(s *state) (next time.Time) {
		for _, i := range s.Instances {
			if due := i.due(); !due.IsZero() && (next.IsZero() || due.Before(next)) {
				next = due
			}
		}
		return next
	})
}

// Advance does what is due inside the account, and returns the instances for whom
// something is due in the cluster.
func (a *Account) Advance() (due []Instance, err error) {
	now := a.now()
	passed := func(i *Instance) bool { at := i.due(); return !at.IsZero() && !at.After(now) }
	if read(a, func(s *state) bool {
		for _, i := range s.Instances {
			if passed(i) || i.Left && i.EndsAt.Add(keeps).Before(now) {
				return false
			}
		}
		return true
	}) {
		return nil, nil
	}
	err = a.write(func(s *state) error {
		for id, i := range s.Instances {
			if i.Left && i.EndsAt.Add(keeps).Before(now) {
				delete(s.Instances, id)
				continue
			}
			for passed(i) && a.step(s, i) {
			}
			if passed(i) {
				due = append(due, *i)
			}
		}
		return nil
	})
	return due, err
}

// step does the next thing that is due, if it is the account's to do.
func (a *Account) step(s *state, i *Instance) bool {
	now := Case{Type: i.Type, Zone: i.Zone, Capacity: i.Capacity}
	switch {
	case i.State == ShuttingDown:
		i.State = Terminated
		s.release(a.now(), i.ID)
		a.tell(s, stateChanged(a, i))
	case i.State == Terminated:
		return false
	case !i.ReclaimedAt.IsZero():
		a.end(s, i, "Server.SpotInstanceTermination: Instance terminated by EC2 due to Spot interruption")
	case i.State == Pending && len(i.Data.KMSKeys) > 0 && s.happens(KMSDenied, now) != nil:
		a.end(s, i, "Client.InternalError: Client error on launch")
	case i.State == Pending:
		i.State = Running
		a.tell(s, stateChanged(a, i))
	default:
		return false
	}
	return true
}

// Note keeps what has been done for an instance in the cluster.
func (a *Account) Note(id string, note func(*Instance)) error {
	return a.write(func(s *state) error {
		if i := s.Instances[id]; i != nil {
			note(i)
		}
		return nil
	})
}

func (s *state) subnet(id string) *Subnet {
	for _, subnet := range s.Subnets {
		if subnet.ID == id {
			return subnet
		}
	}
	return nil
}
