// Package attach decides which additional network interfaces a cluster's nodes need: which
// to create, attach, change and delete. Its functions are pure.
//
// The only memory between two plans is since when an interface has no owner. An interface's
// tags identify its purpose, so an operator that restarts plans like the one before.
package attach

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"croft.dev/croft/api/v1alpha1"
)

// The tags of an interface. EC2 can restrict requests by tags, and the policies that `croft
// iam` generates do so.
const (
	// ClusterTag names the cluster.
	ClusterTag = "croft.dev/cluster"
	// PoolTag names the pool.
	PoolTag = "croft.dev/pool"
	// ClaimTag has the UID of the NodeClaim.
	ClaimTag = "croft.dev/nodeclaim"
	// NetworkTag names the SecondaryNetwork.
	NetworkTag = "croft.dev/network"
	// UnmanagedTag prevents Amazon's VPC CNI from assigning the interface's addresses to
	// pods.
	UnmanagedTag = "node.k8s.amazonaws.com/no_manage"
	// NameTag is the name that consoles display.
	NameTag = "Name"
)

// Phase is the phase of an instance, as far as interfaces are concerned.
type Phase string

// The phases of an instance. The zero value means that the cloud does not list the instance
// yet.
const (
	// Starting means that interfaces cannot be attached yet.
	Starting Phase = "starting"
	// Running means that interfaces can be attached.
	Running Phase = "running"
	// Ended means that interfaces can no longer be attached.
	Ended Phase = "ended"
)

// Claim describes a NodeClaim.
type Claim struct {
	// Name and UID identify the NodeClaim.
	Name, UID string
	// Pool is the name of the claim's Pool.
	Pool string
	// Zone, Instance and InstanceType are set once the instance is launched.
	Zone, Instance, InstanceType string
	// Deleting reports whether the NodeClaim is being deleted.
	Deleting bool
}

// Pool describes a Pool with secondary networks.
type Pool struct {
	Name string
	// Networks are the names of the pool's SecondaryNetworks, in the order of the devices.
	Networks []string
	// Tags are the tags that the pool's instances have, too.
	Tags map[string]string
}

// Interface is a network interface, as the cloud describes it.
type Interface struct {
	ID, Subnet string
	// MAC is the hardware address, by which the node finds the interface.
	MAC  string
	Tags map[string]string
	// Prefixes are the IPv4 prefixes that the interface has in addition to its own address.
	Prefixes []string
	// SourceDestCheck drops packets that are not for the interface's own addresses.
	SourceDestCheck bool
	// Attachment is nil while the interface is available.
	Attachment *Attachment
}

// Attachment is the attachment of an interface to an instance.
type Attachment struct {
	ID, Instance string
	DeviceIndex  int
	// Attached reports whether the interface is attached. Otherwise it is being attached or
	// detached.
	Attached bool
	// DeleteOnTermination deletes the interface with its instance.
	DeleteOnTermination bool
}

// State is the input of a plan.
type State struct {
	// Cluster is the name of the cluster.
	Cluster    string
	Networks   []*v1alpha1.SecondaryNetwork
	Pools      []Pool
	Claims     []Claim
	Interfaces []Interface
	// Phases are the phases of instances, by instance ID.
	Phases map[string]Phase
	// Taken are the device indexes that other interfaces use, by instance ID.
	Taken map[string][]int
	// Attempts counts, by claim and network (Key), the created interfaces that no longer
	// exist: a client token creates only one interface.
	Attempts map[string]int
	// Limits are the maximum numbers of interfaces of instance types, including the first
	// one. A type that is missing is unknown, and not limited here.
	Limits map[string]int
	// Orphans are the interfaces without an owner, and since when. The plan returns the new
	// value.
	Orphans map[string]time.Time
	// Grace is how long an interface without an owner is kept. A cache may not have a
	// NodeClaim yet that another replica has observed.
	Grace time.Duration
	Now   time.Time
}

// Key returns the key of a claim's interface in a network, for Attempts.
func Key(claimUID, network string) string { return claimUID + "/" + network }

// index is a State with maps for look-ups.
type index struct {
	*State
	networks map[string]*v1alpha1.SecondaryNetwork
	pools    map[string]*Pool
	claims   map[string]*Claim
	// owned are the cluster's interfaces by Key, the preferred one first.
	owned map[string][]*Interface
}

func buildIndex(s *State) *index {
	x := &index{
		State: s, networks: map[string]*v1alpha1.SecondaryNetwork{}, pools: map[string]*Pool{}, claims: map[string]*Claim{}, owned: map[string][]*Interface{},
	}
	for _, n := range s.Networks {
		x.networks[n.Name] = n
	}
	for i := range s.Pools {
		x.pools[s.Pools[i].Name] = &s.Pools[i]
	}
	for i := range s.Claims {
		x.claims[s.Claims[i].UID] = &s.Claims[i]
	}
	for i := range s.Interfaces {
		n := &s.Interfaces[i]
		if n.Tags[ClusterTag] != s.Cluster || n.Tags[NetworkTag] == "" {
			continue // not croft's
		}
		key := Key(n.Tags[ClaimTag], n.Tags[NetworkTag])
		x.owned[key] = append(x.owned[key], n)
	}
	for _, all := range x.owned {
		// If two interfaces have the same purpose, prefer an attached one, then the lower
		// ID.
		slices.SortFunc(all, func(a, b *Interface) int {
			return cmp.Or(compareBools(b.Attachment != nil, a.Attachment != nil), strings.Compare(a.ID, b.ID))
		})
	}
	return x
}

// compareBools sorts false before true.
func compareBools(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	default:
		return 1
	}
}

// findZone returns a network's declaration for a zone, or nil.
func findZone(n *v1alpha1.SecondaryNetwork, name string) *v1alpha1.SecondaryNetworkZone {
	for i := range n.Spec.Zones {
		if n.Spec.Zones[i].Zone == name {
			return &n.Spec.Zones[i]
		}
	}
	return nil
}
