package attach

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"croft.dev/croft/api/v1alpha1"
)

// Plan is a list of calls. They are independent of each other: calls that depend on others
// are in a later plan.
type Plan struct {
	Create []Create
	Attach []Attach
	Change []Change
	Delete []Delete
	// Problems are the reasons why nodes lack networks until a person changes something.
	Problems []Problem
	// Waiting are the UIDs of claims that do not have all their interfaces yet.
	Waiting []string
	// Orphans are the interfaces without a known owner, and since when.
	Orphans map[string]time.Time
}

// Empty reports whether there is nothing to do now.
func (p *Plan) Empty() bool {
	return len(p.Create)+len(p.Attach)+len(p.Change)+len(p.Delete) == 0
}

// Create is the creation of an interface.
type Create struct {
	Claim   Claim
	Network string
	Subnet  string
	Groups  []string
	Tags    map[string]string
	// Prefixes is the number of /28 prefixes that EC2 chooses for the interface.
	Prefixes int
	// Token makes the request idempotent: EC2 creates one interface for each token.
	Token string
}

// Attach is the attachment of an interface to an instance.
type Attach struct {
	Claim                        Claim
	Network, Interface, Instance string
	DeviceIndex                  int
}

// Change is the change of one attribute of an interface. EC2 changes one at a time.
type Change struct {
	Network, Interface string
	// Attachment is set to delete the interface with its instance. If it is empty, the
	// change turns off the source/destination check.
	Attachment string
}

// Delete is the deletion of an interface.
type Delete struct{ Network, Interface, Reason string }

// The reasons for which an interface is deleted.
const (
	// NoClaim: its NodeClaim was deleted.
	NoClaim = "its NodeClaim is deleted"
	// ClaimEnds: its NodeClaim is being deleted, or its instance has ended.
	ClaimEnds = "its NodeClaim or instance is being terminated"
	// Second: the same NodeClaim and network have another interface.
	Second = "the NodeClaim has another interface in this network"
	// Unwanted: the pool is no longer attached to the network.
	Unwanted = "the pool no longer uses the network"
)

// Problem is the reason why a claim does not get an interface.
type Problem struct {
	Pool, Claim string
	// Networks are the networks that the claim does not get.
	Networks []string
	// Reason classifies the problem, like the reason of a condition.
	Reason  string
	Message string
}

// The reasons of problems.
const (
	// ReasonNoZone: the network is not declared in the node's zone.
	ReasonNoZone = "NoZone"
	// ReasonTooManyNetworks: the instance type has fewer interfaces than the pool has networks.
	ReasonTooManyNetworks = "TooManyNetworks"
	// ReasonElsewhere: the interface is attached to another instance.
	ReasonElsewhere = "AttachedElsewhere"
	// ReasonPrefixes: the interface has other prefixes than its network requires.
	ReasonPrefixes = "OtherPrefixes"
)

// MakePlan computes the plan for a state.
func MakePlan(s *State) *Plan {
	x, p := buildIndex(s), &Plan{Orphans: map[string]time.Time{}}
	for i := range s.Claims {
		p.planClaim(x, &s.Claims[i])
	}
	for _, key := range slices.Sorted(maps.Keys(x.owned)) {
		for rank, n := range x.owned[key] {
			p.planChanges(x, n, rank)
		}
	}
	slices.SortFunc(p.Change, func(a, b Change) int {
		return cmp.Or(cmp.Compare(a.Interface, b.Interface), cmp.Compare(a.Attachment, b.Attachment))
	})
	return p
}

// planClaim plans the interfaces of a claim.
func (p *Plan) planClaim(x *index, c *Claim) {
	pool := x.pools[c.Pool]
	if pool == nil || len(pool.Networks) == 0 || c.Instance == "" || c.Deleting || x.Phases[c.Instance] == Ended {
		return
	}
	if limit, ok := x.Limits[c.InstanceType]; ok && len(pool.Networks)+1 > limit {
		p.Problems = append(p.Problems, Problem{pool.Name, c.Name, pool.Networks, ReasonTooManyNetworks, fmt.Sprintf(
			"%s has %d network interfaces, and the pool's %d networks need %d, including the node's own: leave this type, or a network, out of the pool",
			c.InstanceType, limit, len(pool.Networks), len(pool.Networks)+1)})
		return
	}
	settled := true
	taken := slices.Clone(x.Taken[c.Instance])
	for _, name := range pool.Networks {
		for _, n := range x.owned[Key(c.UID, name)] {
			if n.Attachment != nil && n.Attachment.Instance == c.Instance {
				taken = append(taken, n.Attachment.DeviceIndex)
			}
		}
	}
	for _, name := range pool.Networks {
		done, index := p.planInterface(x, pool, c, name, taken)
		settled = settled && done
		if index > 0 {
			taken = append(taken, index)
		}
	}
	if !settled {
		p.Waiting = append(p.Waiting, c.UID)
	}
}

// planInterface plans a claim's interface in one network. It reports whether nothing remains to be
// done or waited for, and returns the device index of a planned attachment.
func (p *Plan) planInterface(x *index, pool *Pool, c *Claim, network string, taken []int) (done bool, index int) {
	declared := x.networks[network]
	if declared == nil {
		return true, 0 // the Pool's status reports this
	}
	part := findZone(declared, c.Zone)
	if part == nil {
		p.Problems = append(p.Problems, Problem{pool.Name, c.Name, []string{network}, ReasonNoZone, fmt.Sprintf(
			"secondary network %s does not have the zone %s, in which the pool has a node: add the zone to the network, or exclude it from the pool", network, c.Zone)})
		return true, 0
	}
	owned := x.owned[Key(c.UID, network)]
	if len(owned) == 0 {
		if x.Phases[c.Instance] != "" {
			p.Create = append(p.Create, x.buildCreate(pool, c, declared, part))
		}
		return false, 0
	}
	n := owned[0]
	p.checkPrefixes(pool, c, declared, part, n)
	switch t := n.Attachment; {
	case t == nil && x.Phases[c.Instance] == Running:
		index = findFreeIndex(taken)
		p.Attach = append(p.Attach, Attach{*c, network, n.ID, c.Instance, index})
		return false, index
	case t == nil:
		return false, 0
	case t.Instance != c.Instance:
		p.Problems = append(p.Problems, Problem{pool.Name, c.Name, []string{network}, ReasonElsewhere, fmt.Sprintf(
			"interface %s has the tags of node claim %s, and is attached to %s: detach it, or change its tags", n.ID, c.Name, t.Instance)})
		return true, 0
	default:
		return t.Attached && t.DeleteOnTermination && !n.SourceDestCheck, 0
	}
}

// findFreeIndex returns the lowest free device index, from 1 on.
func findFreeIndex(taken []int) int {
	index := 1
	for slices.Contains(taken, index) {
		index++
	}
	return index
}

func (x *index) buildCreate(pool *Pool, c *Claim, n *v1alpha1.SecondaryNetwork, part *v1alpha1.SecondaryNetworkZone) Create {
	tags := maps.Clone(pool.Tags)
	if tags == nil {
		tags = map[string]string{}
	}
	maps.Copy(tags, map[string]string{
		ClusterTag: x.Cluster, PoolTag: pool.Name, ClaimTag: c.UID, NetworkTag: n.Name, UnmanagedTag: "true", NameTag: c.Name + "/" + n.Name,
	})
	creation := Create{
		Claim: *c, Network: n.Name, Subnet: part.Subnet, Groups: slices.Clone(part.SecurityGroups), Tags: tags, Prefixes: int(n.Spec.PrefixesPerNode),
	}
	creation.Token = computeToken(&creation, x.Attempts[Key(c.UID, n.Name)])
	return creation
}

// planChanges plans the changes of an interface that do not depend on its claim's other ones:
// deletion with its instance, the source/destination check, and deletion when it is no
// longer needed.
func (p *Plan) planChanges(x *index, n *Interface, rank int) {
	if n.Attachment != nil {
		if !n.Attachment.DeleteOnTermination {
			p.Change = append(p.Change, Change{n.Tags[NetworkTag], n.ID, n.Attachment.ID})
		}
		if n.SourceDestCheck {
			p.Change = append(p.Change, Change{Network: n.Tags[NetworkTag], Interface: n.ID})
		}
		return
	}
	reason, at := p.getDeletionReason(x, n, rank)
	switch {
	case reason == "":
		if n.SourceDestCheck {
			p.Change = append(p.Change, Change{Network: n.Tags[NetworkTag], Interface: n.ID})
		}
	case at:
		p.Delete = append(p.Delete, Delete{n.Tags[NetworkTag], n.ID, reason})
	default:
		since, ok := x.Orphans[n.ID]
		if !ok {
			since = x.Now
		}
		p.Orphans[n.ID] = since
		if !x.Now.Before(since.Add(x.Grace)) {
			p.Delete = append(p.Delete, Delete{n.Tags[NetworkTag], n.ID, reason})
		}
	}
}

// getDeletionReason returns why an available interface must be deleted, or "", and whether it must be
// deleted at once.
func (p *Plan) getDeletionReason(x *index, n *Interface, rank int) (reason string, at bool) {
	c := x.claims[n.Tags[ClaimTag]]
	if c == nil {
		return NoClaim, false
	}
	pool := x.pools[c.Pool]
	switch {
	case c.Deleting || x.Phases[c.Instance] == Ended:
		return ClaimEnds, true
	case rank > 0:
		return Second, true
	case pool == nil || !slices.Contains(pool.Networks, n.Tags[NetworkTag]):
		return Unwanted, false
	default:
		return "", false
	}
}

// String returns the plan in one line, for logs and tests.
func (p *Plan) String() string {
	var parts []string
	for _, c := range p.Create {
		parts = append(parts, "create "+c.Claim.Name+"/"+c.Network)
	}
	for _, a := range p.Attach {
		parts = append(parts, fmt.Sprintf("attach %s to %s at %d", a.Interface, a.Instance, a.DeviceIndex))
	}
	for _, c := range p.Change {
		if c.Attachment == "" {
			parts = append(parts, "no source/dest check of "+c.Interface)
		} else {
			parts = append(parts, "delete "+c.Interface+" on termination")
		}
	}
	for _, d := range p.Delete {
		parts = append(parts, "delete "+d.Interface)
	}
	for _, problem := range p.Problems {
		parts = append(parts, problem.Reason)
	}
	return strings.Join(parts, ", ")
}
