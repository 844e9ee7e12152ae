package account

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"maps"
	"slices"
	"time"
)

// Interface is a network interface.
type Interface struct {
	ID          string `json:"id"`
	Subnet      string `json:"subnet"`
	Zone        string `json:"zone"`
	VPC         string `json:"vpc"`
	Description string `json:"description,omitempty"`
	MAC         string `json:"mac"`
	// Addresses are its addresses, the primary one first; Prefixes are delegated to it.
	Addresses []string `json:"addresses"`
	Prefixes  []string `json:"prefixes,omitempty"`
	Groups    []string `json:"groups,omitempty"`
	Tags      Tags     `json:"tags,omitempty"`
	// SourceDestCheck drops packets that are not from or for its own addresses.
	SourceDestCheck bool      `json:"sourceDestCheck"`
	Created         time.Time `json:"created"`
	// Attachment is nil while the interface is available.
	Attachment *Attachment `json:"attachment,omitempty"`
}

// Attachment attaches an interface to an instance.
type Attachment struct {
	ID                  string    `json:"id"`
	Instance            string    `json:"instance"`
	DeviceIndex         int       `json:"deviceIndex"`
	DeleteOnTermination bool      `json:"deleteOnTermination"`
	Began               time.Time `json:"began"`
	AttachedAt          time.Time `json:"attachedAt"`
	// DetachedAt is zero unless the interface is being detached.
	DetachedAt time.Time `json:"detachedAt,omitzero"`
}

// Status returns the attachment's status, as EC2 calls it.
func (t *Attachment) Status(now time.Time) string {
	switch {
	case !t.DetachedAt.IsZero():
		return "detaching"
	case now.Before(t.AttachedAt):
		return "attaching"
	default:
		return "attached"
	}
}

// Status returns the interface's status, as EC2 calls it.
func (n *Interface) Status() string {
	if n.Attachment == nil {
		return "available"
	}
	return "in-use"
}

// copyAt returns a copy of the interface at a time, without an attachment that has ended by then.
func (n *Interface) copyAt(now time.Time) Interface {
	current := *n
	if n.Attachment != nil {
		attachment := *n.Attachment
		current.Attachment = &attachment
		if !attachment.DetachedAt.IsZero() && !attachment.DetachedAt.After(now) {
			current.Attachment = nil
		}
	}
	return current
}

// NewInterface is a request for an interface.
type NewInterface struct {
	Subnet, Description string
	Groups              []string
	Tags                Tags
	// Token makes a second call with the same parameters return the interface of the first.
	Token string
	// Wanted are the addresses and prefixes.
	Wanted Wanted
	// Parameters are all parameters of the call, to distinguish it from another with the same
	// token.
	Parameters string
}

// token is the result of a call with a client token.
type token struct {
	Parameters string `json:"parameters"`
	Interface  string `json:"interface"`
}

// CreateInterface creates an interface. A second call with the same token returns the interface
// of the first, even if it has been deleted since.
func (a *Account) CreateInterface(order NewInterface) (made Interface, err error) {
	err = a.changeState(func(s *state) error {
		if before, ok := s.Tokens[order.Token]; ok && order.Token != "" {
			if before.Parameters != order.Parameters {
				return &Invalid{"IdempotentParameterMismatch", "The client token has been used with other parameters."}
			}
			if n := s.Interfaces[before.Interface]; n != nil {
				made = n.copyAt(a.now())
			} else {
				made = Interface{ID: before.Interface, Subnet: order.Subnet, VPC: vpc, Tags: order.Tags, SourceDestCheck: true}
			}
			return nil
		}
		subnet := s.findSubnet(order.Subnet)
		if subnet == nil {
			return newNoSubnetError(order.Subnet)
		}
		for _, group := range order.Groups {
			if !slices.ContainsFunc(s.SecurityGroups, func(g *SecurityGroup) bool { return g.ID == group }) {
				return &Invalid{"InvalidGroup.NotFound", fmt.Sprintf("The security group '%s' does not exist", group)}
			}
		}
		if s.countFault(SubnetFull, Case{Action: "ec2:CreateNetworkInterface", Subnet: subnet.ID, Zone: subnet.Zone}) != nil {
			return newFullError(subnet)
		}
		given, err := s.allotAddresses(subnet, order.Wanted, true)
		if err != nil {
			return err
		}
		n := a.addInterface(s, subnet, given, order.Groups, order.Tags)
		n.Description = order.Description
		if order.Token != "" {
			s.Tokens[order.Token] = token{order.Parameters, n.ID}
		}
		made = *n
		return nil
	})
	return made, err
}

// addInterface adds a new interface to the state.
func (a *Account) addInterface(s *state, subnet *Subnet, given allotment, groups []string, tags Tags) *Interface {
	n := &Interface{
		ID: newID("eni"), Subnet: subnet.ID, Zone: subnet.Zone, VPC: vpc, MAC: newMAC(), Addresses: given.addresses, Prefixes: given.prefixes,
		Groups: slices.Clone(groups), Tags: maps.Clone(tags), SourceDestCheck: true, Created: a.now(),
	}
	s.Interfaces[n.ID] = n
	subnet.Free -= given.countAddresses()
	return n
}

func newMAC() string {
	var b [5]byte
	_, _ = rand.Read(b[:]) // never fails
	return fmt.Sprintf("02:%02x:%02x:%02x:%02x:%02x", b[0], b[1], b[2], b[3], b[4])
}

// ListInterfaces returns the interfaces that match, the oldest first, without those that the fault
// Stale hides.
func (a *Account) ListInterfaces(f Filters, ids ...string) ([]Interface, error) {
	var out []Interface
	for _, id := range ids {
		if readState(a, func(s *state) *Interface { return a.findVisible(s, id) }) == nil {
			return nil, newNoInterfaceError(id)
		}
	}
	readState(a, func(s *state) any {
		now := a.now()
		for _, n := range s.Interfaces {
			if len(ids) > 0 && !slices.Contains(ids, n.ID) || a.findVisible(s, n.ID) == nil {
				continue
			}
			if current := n.copyAt(now); f.matches(current.buildAttributes(now), current.Tags) {
				out = append(out, current)
			}
		}
		return nil
	})
	slices.SortFunc(out, func(x, y Interface) int { return cmp.Or(x.Created.Compare(y.Created), cmp.Compare(x.ID, y.ID)) })
	return out, nil
}

// ListAllInterfaces returns all interfaces, including those that the fault Stale hides.
func (a *Account) ListAllInterfaces() []Interface {
	return readState(a, func(s *state) (out []Interface) {
		for _, n := range s.Interfaces {
			out = append(out, n.copyAt(a.now()))
		}
		slices.SortFunc(out, func(x, y Interface) int { return cmp.Or(x.Created.Compare(y.Created), cmp.Compare(x.ID, y.ID)) })
		return out
	})
}

// buildAttributes returns the attributes that filters may name.
func (n *Interface) buildAttributes(now time.Time) map[string][]string {
	all := map[string][]string{
		"network-interface-id": {n.ID}, "subnet-id": {n.Subnet}, "vpc-id": {n.VPC}, "availability-zone": {n.Zone}, "status": {n.Status()},
		"description": {n.Description}, "mac-address": {n.MAC}, "group-id": n.Groups, "addresses.private-ip-address": n.Addresses,
		"private-ip-address": n.Addresses[:min(1, len(n.Addresses))],
		// Without an attachment, these filters match no interface.
		"attachment.instance-id": nil, "attachment.status": nil, "attachment.attachment-id": nil, "attachment.device-index": nil,
	}
	if t := n.Attachment; t != nil {
		all["attachment.instance-id"], all["attachment.status"] = []string{t.Instance}, []string{t.Status(now)}
		all["attachment.attachment-id"], all["attachment.device-index"] = []string{t.ID}, []string{fmt.Sprint(t.DeviceIndex)}
	}
	return all
}

// FindInterface returns an interface by its ID, even if the fault Stale hides it; nil if there is
// none.
func (a *Account) FindInterface(id string) *Interface {
	return readState(a, func(s *state) *Interface {
		if n := s.Interfaces[id]; n != nil {
			current := n.copyAt(a.now())
			return &current
		}
		return nil
	})
}

// findVisible returns an interface by its ID; nil if there is none, or the fault Stale hides it.
func (a *Account) findVisible(s *state, id string) *Interface {
	n := s.Interfaces[id]
	if n == nil {
		return nil
	}
	now := a.now()
	if f := s.findFault(Stale, Case{Zone: n.Zone, Subnet: n.Subnet}); f != nil && now.Before(n.Created.Add(f.Delay)) {
		return nil
	}
	if n.Attachment != nil && !n.Attachment.DetachedAt.IsZero() && !n.Attachment.DetachedAt.After(now) {
		n.Attachment = nil
	}
	return n
}

// DeleteInterface deletes an interface that is not attached.
func (a *Account) DeleteInterface(id string) error {
	return a.changeState(func(s *state) error {
		n := a.findVisible(s, id)
		if n == nil {
			return newNoInterfaceError(id)
		}
		if n.Attachment != nil {
			return &Invalid{"InvalidParameterValue", fmt.Sprintf("Network interface '%s' is currently in use.", id)}
		}
		s.dropInterface(n)
		return nil
	})
}

// dropInterface removes an interface from the state, and frees its addresses.
func (s *state) dropInterface(n *Interface) {
	delete(s.Interfaces, n.ID)
	if subnet := s.findSubnet(n.Subnet); subnet != nil {
		subnet.Free += allotment{n.Addresses, n.Prefixes}.countAddresses()
	}
}

func newNoInterfaceError(id string) error {
	return &Invalid{"InvalidNetworkInterfaceID.NotFound", fmt.Sprintf("The networkInterface ID '%s' does not exist", id)}
}

func newNoSubnetError(id string) error {
	return &Invalid{"InvalidSubnetID.NotFound", fmt.Sprintf("The subnet ID '%s' does not exist", id)}
}
