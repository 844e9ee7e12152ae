package account

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// FaultKind is a kind of fault.
type FaultKind string

// The faults.
const (
	// NoCapacity answers InsufficientInstanceCapacity, for a type, a zone or a capacity type.
	NoCapacity FaultKind = "no-capacity"
	// Unauthorized refuses an action, with a message that STS decodes.
	Unauthorized FaultKind = "unauthorized"
	// PassRoleDenied refuses to pass the nodes' role to instances.
	PassRoleDenied FaultKind = "pass-role-denied"
	// SpotRoleMissing simulates an account without the service-linked role for spot, in
	// which the caller may not create it.
	SpotRoleMissing FaultKind = "spot-role-missing"
	// SubnetFull leaves no free address in a subnet.
	SubnetFull FaultKind = "subnet-full"
	// VCPUQuota limits the number of running vCPUs.
	VCPUQuota FaultKind = "vcpu-quota"
	// SpotQuota refuses to start spot instances.
	SpotQuota FaultKind = "spot-quota"
	// Throttled answers RequestLimitExceeded.
	Throttled FaultKind = "throttled"
	// Slow delays answers.
	Slow FaultKind = "slow"
	// NeverRegisters starts instances that never become nodes, as if the cluster did not
	// admit their role.
	NeverRegisters FaultKind = "never-registers"
	// NeverReady registers nodes whose network never gets ready.
	NeverReady FaultKind = "never-ready"
	// KMSDenied ends instances at launch, as if they might not use their volume's key.
	KMSDenied FaultKind = "kms-denied"
	// TaintLost registers nodes without the taint karpenter.sh/unregistered, as an
	// image that ignores its user data does.
	TaintLost FaultKind = "taint-lost"
	// Stale hides network interfaces for some time after their creation, as EC2 may.
	Stale FaultKind = "stale"
)

// Faults describes all kinds, with the options that apply to each.
var Faults = map[FaultKind]string{
	NoCapacity:      "EC2 has no capacity (type, zone, capacity)",
	Unauthorized:    "IAM denies an action, with an encoded message (action; as-node; explicit-deny)",
	PassRoleDenied:  "IAM denies passing the nodes' role to instances",
	SpotRoleMissing: "the service-linked role for spot is missing and may not be created",
	SubnetFull:      "no free addresses (subnet, zone)",
	VCPUQuota:       "a quota of vCPUs (limit)",
	SpotQuota:       "no more spot instances",
	Throttled:       "RequestLimitExceeded (action)",
	Slow:            "answers are late (action, delay)",
	NeverRegisters:  "instances start and never register as nodes (type, zone, capacity)",
	NeverReady:      "nodes register and never get ready: cni plugin not initialized (type, zone, capacity)",
	KMSDenied:       "instances end at launch: they may not use the key of their volume",
	Stale:           "new network interfaces are not listed for some time (zone, subnet, delay)",
	TaintLost:       "nodes register without the taint karpenter.sh/unregistered",
}

// Fault is an injected fault. It stays active until it is removed, or has occurred Times times.
type Fault struct {
	ID   string    `json:"id"`
	Kind FaultKind `json:"kind"`
	// Case restricts the fault. Empty fields match every value.
	Case
	// Times is the number of remaining occurrences; 0 for no limit.
	Times int `json:"times,omitempty"`
	// Limit is the quota of VCPUQuota.
	Limit int `json:"limit,omitempty"`
	// Delay is the delay of answers of Slow, and of new interfaces of Stale.
	Delay time.Duration `json:"delay,omitempty"`
	// NodeRole makes the caller's role, for Unauthorized, the role of the controller's node.
	NodeRole bool `json:"nodeRole,omitempty"`
	// ExplicitDeny makes a policy deny the action explicitly, for Unauthorized. Otherwise no
	// policy allows it.
	ExplicitDeny bool `json:"explicitDeny,omitempty"`
}

// Case is the condition of a fault, or the facts of a call or an instance.
type Case struct {
	// Action is a service and a call: ec2:CreateFleet.
	Action   string `json:"action,omitempty"`
	Type     string `json:"type,omitempty"`
	Zone     string `json:"zone,omitempty"`
	Capacity string `json:"capacity,omitempty"`
	Subnet   string `json:"subnet,omitempty"`
}

func (c Case) matches(other Case) bool {
	covers := func(mine, others string) bool { return mine == "" || strings.EqualFold(mine, others) }
	return covers(c.Action, other.Action) && covers(c.Type, other.Type) && covers(c.Zone, other.Zone) &&
		covers(c.Capacity, other.Capacity) && covers(c.Subnet, other.Subnet)
}

// String returns the fields that are set, as NAME=VALUE.
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

// findFault returns an active fault that matches, without counting the occurrence; nil if none does.
func (s *state) findFault(kind FaultKind, now Case) *Fault {
	for _, f := range s.Faults {
		if f.Kind == kind && f.matches(now) {
			return f
		}
	}
	return nil
}

// countFault returns an active fault that matches, and counts the occurrence; nil if none does.
func (s *state) countFault(kind FaultKind, now Case) *Fault {
	f := s.findFault(kind, now)
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

// CountFault returns an active fault that matches, and counts the occurrence; nil if none does.
func (a *Account) CountFault(kind FaultKind, now Case) *Fault {
	if readState(a, func(s *state) bool { return s.findFault(kind, now) == nil }) {
		return nil
	}
	var f *Fault
	// The fault has occurred even if the account cannot be saved.
	_ = a.changeState(func(s *state) error {
		f = s.countFault(kind, now)
		return nil
	})
	return f
}

// AddFault injects a fault, and returns it with its ID.
func (a *Account) AddFault(f Fault) (Fault, error) {
	if _, ok := Faults[f.Kind]; !ok {
		return f, fmt.Errorf("there is no fault %q", f.Kind)
	}
	err := a.changeState(func(s *state) error {
		s.Faulted++
		f.ID = fmt.Sprintf("f%d", s.Faulted)
		kept := f // a copy, in which occurrences are counted while the caller reads its own
		s.Faults = append(s.Faults, &kept)
		return nil
	})
	return f, err
}

// ListFaults returns the active faults.
func (a *Account) ListFaults() []Fault {
	return readState(a, func(s *state) []Fault {
		out := make([]Fault, len(s.Faults))
		for i, f := range s.Faults {
			out[i] = *f
		}
		return out
	})
}

// ClearFaults removes faults, all if none are named, and returns their number.
func (a *Account) ClearFaults(ids ...string) (cleared int, err error) {
	err = a.changeState(func(s *state) error {
		before := len(s.Faults)
		s.Faults = slices.DeleteFunc(s.Faults, func(f *Fault) bool { return len(ids) == 0 || slices.Contains(ids, f.ID) })
		cleared = before - len(s.Faults)
		return nil
	})
	return cleared, err
}
