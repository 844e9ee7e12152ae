package account

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"
)

// State is the state of an instance.
type State string

// The states of an instance.
const (
	Pending      State = "pending"
	Running      State = "running"
	ShuttingDown State = "shutting-down"
	Terminated   State = "terminated"
)

// Code returns EC2's number of the state.
func (s State) Code() int {
	return map[State]int{Pending: 0, Running: 16, ShuttingDown: 32, Terminated: 48}[s]
}

// OnDemand and Spot are the capacity types of instances.
const (
	OnDemand = "on-demand"
	Spot     = "spot"
)

// Instance is an EC2 instance.
type Instance struct {
	ID     string `json:"id"`
	Type   string `json:"type"`
	Arch   string `json:"arch"`
	Zone   string `json:"zone"`
	ZoneID string `json:"zoneID"`
	Subnet string `json:"subnet"`
	VPC    string `json:"vpc"`
	IP     string `json:"ip"`
	// Capacity is its capacity type.
	Capacity    string `json:"capacity"`
	SpotRequest string `json:"spotRequest,omitempty"`
	Reservation string `json:"reservation,omitempty"`
	// Template is the ID of its launch template, Data the template's settings.
	Template string       `json:"template"`
	Data     TemplateData `json:"data"`
	Tags     Tags         `json:"tags"`
	State    State        `json:"state"`
	// Reason is the reason of its end.
	Reason string `json:"reason,omitempty"`

	Launched    time.Time `json:"launched"`
	RunsAt      time.Time `json:"runsAt"`
	RegistersAt time.Time `json:"registersAt"`
	ReadyAt     time.Time `json:"readyAt"`
	EndsAt      time.Time `json:"endsAt,omitzero"`
	ReclaimedAt time.Time `json:"reclaimedAt,omitzero"`

	// Registered reports that it has become a node, Left that its node has been deleted. Lost
	// means that it never registers, Unready that it never gets ready.
	Registered bool `json:"registered"`
	Left       bool `json:"left"`
	Lost       bool `json:"lost,omitempty"`
	Unready    bool `json:"unready,omitempty"`
	// Untainted means that it registers without the taint karpenter.sh/unregistered.
	Untainted bool `json:"untainted,omitempty"`
}

// DNSName returns the DNS name of the instance, which is also its node's name.
func (i *Instance) DNSName(region string) string {
	name := []byte("ip-" + i.IP)
	for n, c := range name {
		if c == '.' {
			name[n] = '-'
		}
	}
	return fmt.Sprintf("%s.%s.compute.internal", name, region)
}

// ProviderID returns the provider ID of its node.
func (i *Instance) ProviderID() string { return "aws:///" + i.Zone + "/" + i.ID }

// keeps is the time for which terminated instances are still listed.
const keeps = time.Hour

// ListInstances returns the instances that match, the oldest first.
func (a *Account) ListInstances(f Filters, ids ...string) []Instance {
	return readState(a, func(s *state) (out []Instance) {
		for _, i := range s.Instances {
			if len(ids) > 0 && !slices.Contains(ids, i.ID) {
				continue
			}
			if f.matches(map[string][]string{
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

// FindInstance returns an instance by its ID; nil if there is none.
func (a *Account) FindInstance(id string) *Instance {
	return readState(a, func(s *state) *Instance { return copyOf(s.Instances[id]) })
}

// AddTags adds tags to an instance or a network interface, and reports whether it exists.
func (a *Account) AddTags(id string, tags Tags) (found bool, err error) {
	err = a.changeState(func(s *state) error {
		var existing *Tags
		if i := s.Instances[id]; i != nil {
			existing = &i.Tags
		} else if n := a.findVisible(s, id); n != nil {
			existing = &n.Tags
		}
		if found = existing != nil; !found {
			return nil
		}
		fresh := Tags{}
		maps.Copy(fresh, *existing)
		maps.Copy(fresh, tags)
		*existing = fresh
		return nil
	})
	return found, err
}

// Terminate terminates instances. It does not change instances that have ended.
func (a *Account) Terminate(ids ...string) error {
	return a.changeState(func(s *state) error {
		for _, id := range ids {
			if i := s.Instances[id]; i != nil {
				a.endInstance(s, i, "User initiated")
			}
		}
		return nil
	})
}

func (a *Account) endInstance(s *state, i *Instance, reason string) {
	if i.State == ShuttingDown || i.State == Terminated {
		return
	}
	if i.State == Running {
		s.Used = append(s.Used, i.toUsage(a.now()))
	}
	i.State, i.Reason = ShuttingDown, reason
	i.EndsAt = a.now().Add(a.scaleDuration(untilTerminated.drawDuration()))
	a.sendEvent(s, newStateEvent(a, i))
}

// Interrupt interrupts a spot instance: it sends the notice now, and terminates the instance
// after two minutes.
func (a *Account) Interrupt(id string) error {
	return a.changeState(func(s *state) error {
		i := s.Instances[id]
		switch {
		case i == nil:
			return fmt.Errorf("there is no instance %s", id)
		case i.Capacity != Spot:
			return fmt.Errorf("instance %s is %s: only spot instances can be interrupted", id, i.Capacity)
		case i.State != Pending && i.State != Running:
			return fmt.Errorf("instance %s is %s", id, i.State)
		}
		i.ReclaimedAt = a.now().Add(a.scaleDuration(spotNotice))
		a.sendEvent(s, newSpotEvent(a, i))
		return nil
	})
}

// FindNextDue returns the time of the next due change of an instance; zero if there is none.
func (a *Account) FindNextDue() time.Time {
	return readState(a, func(s *state) (next time.Time) {
		for _, i := range s.Instances {
			if due := i.nextDue(); !due.IsZero() && (next.IsZero() || due.Before(next)) {
				next = due
			}
		}
		return next
	})
}

// Advance makes the changes that are due in the account, and returns the instances whose nodes
// are due to be registered or deleted.
func (a *Account) Advance() (due []Instance, err error) {
	now := a.now()
	passed := func(i *Instance) bool { at := i.nextDue(); return !at.IsZero() && !at.After(now) }
	if readState(a, func(s *state) bool {
		for _, i := range s.Instances {
			if passed(i) || i.Left && i.EndsAt.Add(keeps).Before(now) {
				return false
			}
		}
		return true
	}) {
		return nil, nil
	}
	err = a.changeState(func(s *state) error {
		for id, i := range s.Instances {
			if i.Left && i.EndsAt.Add(keeps).Before(now) {
				delete(s.Instances, id)
				continue
			}
			for passed(i) && a.stepInstance(s, i) {
			}
			if passed(i) {
				due = append(due, *i)
			}
		}
		return nil
	})
	return due, err
}

// stepInstance makes the next due change of an instance in the account. It reports false if the change
// is due in the cluster.
func (a *Account) stepInstance(s *state, i *Instance) bool {
	now := Case{Type: i.Type, Zone: i.Zone, Capacity: i.Capacity}
	switch {
	case i.State == ShuttingDown:
		i.State = Terminated
		s.releaseInterfaces(a.now(), i.ID)
		a.sendEvent(s, newStateEvent(a, i))
	case i.State == Terminated:
		return false
	case !i.ReclaimedAt.IsZero():
		a.endInstance(s, i, "Server.SpotInstanceTermination: Instance terminated by EC2 due to Spot interruption")
	case i.State == Pending && len(i.Data.KMSKeys) > 0 && s.countFault(KMSDenied, now) != nil:
		a.endInstance(s, i, "Client.InternalError: Client error on launch")
	case i.State == Pending:
		i.State = Running
		a.sendEvent(s, newStateEvent(a, i))
	default:
		return false
	}
	return true
}

// UpdateInstance records the registration or the deletion of an instance's node.
func (a *Account) UpdateInstance(id string, note func(*Instance)) error {
	return a.changeState(func(s *state) error {
		if i := s.Instances[id]; i != nil {
			note(i)
		}
		return nil
	})
}

func (s *state) findSubnet(id string) *Subnet {
	for _, subnet := range s.Subnets {
		if subnet.ID == id {
			return subnet
		}
	}
	return nil
}
