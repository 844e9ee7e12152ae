package account

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// FaultKind is something that can be made to go wrong.
type FaultKind string

// The faults.
const (
	// NoCapacity is InsufficientInstanceCapacity for a type, a zone or a way of
	// buying.
	NoCapacity FaultKind = "no-capacity"
	// Unauthorized refuses an action, with a message that STS decodes.
	Unauthorized FaultKind = "unauthorized"
	// PassRoleDenied refuses to hand the nodes' role to instances.
	PassRoleDenied FaultKind = "pass-role-denied"
	// SpotRoleMissing is an account without the service-linked role for spot, and
	// nobody who may create it.
	SpotRoleMissing FaultKind = "spot-role-missing"
	// SubnetFull has no address left in a subnet.
	SubnetFull FaultKind = "subnet-full"
	// VCPUQuota lets no more than a number of vCPUs run.
	VCPUQuota FaultKind = "vcpu-quota"
	// SpotQuota lets no spot instance start.
	SpotQuota FaultKind = "spot-quota"
	// Throttled answers RequestLimitExceeded.
	Throttled FaultKind = "throttled"
	// Slow answers late.
	Slow FaultKind = "slow"
	// NeverRegisters starts instances that never become nodes, as when nothing in
	// the cluster lets their role in.
	NeverRegisters FaultKind = "never-registers"
	// NeverReady registers nodes whose network never comes up.
	NeverReady FaultKind = "never-ready"
	// KMSDenied ends instances at once, as when their volume's key may not be used.
	KMSDenied FaultKind = "kms-denied"
	// TaintLost registers nodes without the taint karpenter.sh/unregistered, as an
	// image does that does not do as its user data says.
	TaintLost FaultKind = "taint-lost"
	// Stale does not show network interfaces for a while after they were made, as EC2
	// may.
	Stale FaultKind = "stale"
)

// Faults are all kinds, and what each can be narrowed down to.
var Faults = map[FaultKind]string{
	NoCapacity:      "no instances to be had (type, zone, capacity)",
	Unauthorized:    "an action is refused, with an encoded message (action; principal node; explicit-deny)",
	PassRoleDenied:  "the role of the nodes may not be handed to instances",
	SpotRoleMissing: "the service-linked role for spot is missing and may not be created",
	SubnetFull:      "no free addresses (subnet, zone)",
	VCPUQuota:       "no more than so many vCPUs (limit)",
	SpotQuota:       "no more spot instances",
	Throttled:       "RequestLimitExceeded (action)",
	Slow:            "answers come late (action, delay)",
	NeverRegisters:  "instances start and never register as nodes (type, zone, capacity)",
	NeverReady:      "nodes register and never get ready: cni plugin not initialized (type, zone, capacity)",
	KMSDenied:       "instances end as soon as they start: the key of their volume may not be used",
	Stale:           "network interfaces are not seen for a while after they are made (zone, subnet, delay)",
	TaintLost:       "nodes register without the taint karpenter.sh/unregistered",
}

// Fault is something that goes wrong, until it is taken back or has gone wrong as
// often as it was to.
type Fault struct {
	ID   string    `json:"id"`
	Kind FaultKind `json:"kind"`
	// Case narrows it down: what is empty matches everything.
	Case
	// Times is how often it still happens; 0 for always.
	Times int `json:"times,omitempty"`
	// Limit is the quota.
	Limit int `json:"limit,omitempty"`
	// Delay is by how much answers are late.
	Delay time.Duration `json:"delay,omitempty"`
	// NodeRole says that whoever calls is not the controller but the node that it
	// runs on.
	NodeRole bool `json:"nodeRole,omitempty"`
	// ExplicitDeny says that a policy forbids it, and not only that none allows it.
	ExplicitDeny bool `json:"explicitDeny,omitempty"`
}

// Case is when a fault happens.
type Case struct {
	// Action is a service and a call: ec2:CreateFleet.
	Action   string `json:"action,omitempty"`
	Type     string `json:"type,omitempty"`
	Zone     string `json:"zone,omitempty"`
	Capacity string `json:"capacity,omitempty"`
	Subnet   string `json:"subnet,omitempty"`
}

func (c Case) covers(other Case) bool {
	covers := func(mine, others string) bool { return mine == "" || strings.EqualFold(mine, others) }
	return covers(c.Action, other.Action) && covers(c.Type, other.Type) && covers(c.Zone, other.Zone) &&
		covers(c.Capacity, other.Capacity) && covers(c.Subnet, other.Subnet)
}

// String is the case as one would say it.
func (c Case) String() string {
	var parts []string
	for _, p := range []struct{ name, value string }{
		{"action", c.Action}, {"type", c.Type}, {"zone", c.Zone}, {"capacity", c.Capacity}, {"subnet", c.Subnet},
	} {
		if p.value != "" {
			parts = append(parts, p.name+"="+p.value)
		}
	}
	return strings.Join(parts, " ")
}

// fault finds one that happens now, without counting it.
func (s *state) fault(kind FaultKind, now Case) *Fault {
	for _, f := range s.Faults {
		if f.Kind == kind && f.covers(now) {
			return f
		}
	}
	return nil
}

// happens finds a fault that happens now, and counts it.
func (s *state) happens(kind FaultKind, now Case) *Fault {
	f := s.fault(kind, now)
	if f == nil {
		return nil
	}
	happened := *f
	if f.Times == 1 {
		s.Faults = slices.DeleteFunc(s.Faults, func(o *Fault) bool { return o == f })
	} else if f.Times > 1 {
		f.Times--
	}
	return &happened
}

// Happens finds a fault that happens now, and counts it; nil if none does.
func (a *Account) Happens(kind FaultKind, now Case) *Fault {
	if read(a, func(s *state) bool { return s.fault(kind, now) == nil }) {
		return nil
	}
	var f *Fault
	// What cannot be saved happened all the same.
	_ = a.write(func(s *state) error {
		f = s.happens(kind, now)
		return nil
	})
	return f
}

// AddFault has something go wrong from now on.
func (a *Account) AddFault(f Fault) (Fault, error) {
	if _, ok := Faults[f.Kind]; !ok {
		return f, fmt.Errorf("there is no fault %q", f.Kind)
	}
	err := a.write(func(s *state) error {
		s.Faulted++
		f.ID = fmt.Sprintf("f%d", s.Faulted)
		kept := f // which counts how often it happens, while the caller reads its own
		s.Faults = append(s.Faults, &kept)
		return nil
	})
	return f, err
}

// ListFaults are those that go wrong now.
func (a *Account) ListFaults() []Fault {
	return read(a, func(s *state) []Fault {
		out := make([]Fault, len(s.Faults))
		for i, f := range s.Faults {
			out[i] = *f
		}
		return out
	})
}

// ClearFaults takes faults back, all if none are named, and says how many.
func (a *Account) ClearFaults(ids ...string) (cleared int, err error) {
	err = a.write(func(s *state) error {
		before := len(s.Faults)
		s.Faults = slices.DeleteFunc(s.Faults, func(f *Fault) bool { return len(ids) == 0 || slices.Contains(ids, f.ID) })
		cleared = before - len(s.Faults)
		return nil
	})
	return cleared, err
}
