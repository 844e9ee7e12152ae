// Package attach decides which network interfaces a cluster's nodes need beside their
// own: which to create, attach, change and delete. It reads values and returns values.
//
// Nothing is remembered from one plan to the next but how long something has been
// without an owner. An interface says by its tags what it is for, so an operator that
// starts anew plans as the one before it did.
package attach

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"croft.dev/croft/api/v1alpha1"
)

// The tags of an interface. EC2 allows requests to be limited by them, and the
// statements of `croft iam` do so.
const (
	// ClusterTag names the cluster.
	ClusterTag = "croft.dev/cluster"
	// PoolTag names the pool.
	PoolTag = "croft.dev/pool"
	// ClaimTag is the UID of the NodeClaim.
	ClaimTag = "croft.dev/nodeclaim"
	// NetworkTag names the SecondaryNetwork.
	NetworkTag = "croft.dev/network"
	// UnmanagedTag keeps Amazon's VPC CNI from giving the interface's addresses to pods.
	UnmanagedTag = "node.k8s.amazonaws.com/no_manage"
	// NameTag is what consoles show.
	NameTag = "Name"
)

// Phase is where an instance stands, as far as interfaces go.
type Phase string

// The phases of an instance. The zero value is one that the cloud does not show yet.
const (
	// Starting takes no interface yet, and will.
	Starting Phase = "starting"
	// Running takes interfaces.
	Running Phase = "running"
	// Ended takes no interface any more.
	Ended Phase = "ended"
)

// Claim is a NodeClaim.
type Claim struct {
	// Name and UID are the object's.
	Name, UID string
	// Pool is the name of the Pool that it belongs to.
	Pool string
	// Zone, Instance and InstanceType are known once it is launched.
	Zone, Instance, InstanceType string
	// Deleting says that it is being deleted.
	Deleting bool
}

// Pool is what a Pool asks for.
type Pool struct {
	Name string
	// Networks are the names of its SecondaryNetworks, in the order of the devices.
	Networks []string
	// Tags are those that the pool's instances have, too.
	Tags map[string]string
}

// Interface is a network interface as the cloud shows it.
type Interface struct {
	ID, Subnet string
	// MAC is its hardware address, by which the node finds it.
	MAC  string
	Tags map[string]string
	// Prefixes are the IPv4 prefixes that the interface has beside its own address.
	Prefixes []string
	// SourceDestCheck drops packets that are not for the interface's own addresses.
	SourceDestCheck bool
	// Attachment is nil while the interface is available.
	Attachment *Attachment
}

// Attachment ties an interface to an instance.
type Attachment struct {
	ID, Instance string
	DeviceIndex  int
	// Done says that it is attached; otherwise it is being attached or detached.
	Done bool
	// DeleteOnTermination deletes the interface with its instance.
	DeleteOnTermination bool
}

// State is all that a plan is made from.
type State struct {
	// Cluster is the name of the cluster.
	Cluster    string
	Networks   []*v1alpha1.SecondaryNetwork
	Pools      []Pool
	Claims     []Claim
	Interfaces []Interface
	// Phases are those of instances, by their IDs.
	Phases map[string]Phase
	// Taken are device indexes of instances that others have taken, by the instances' IDs.
	Taken map[string][]int
	// Attempts count, by claim and network (Key), the interfaces that were made and are gone:
	// a client token makes an interface once only.
	Attempts map[string]int
	// Limits are how many interfaces a type of instance has, its first one included. A type
	// that is not there is not known, and not limited here.
	Limits map[string]int
	// Orphans are the interfaces without an owner, and since when. The plan returns the new
	// ones.
	Orphans map[string]time.Time
	// Grace is how long an interface is without an owner before it is deleted: a cache may
	// not show a NodeClaim yet that another replica saw.
	Grace time.Duration
	Now   time.Time
}

// Key is that of a claim's interface in a network, for Attempts.
func Key(claimUID, network string) string { return claimUID + "/" + network }

// index is a State by what it is looked up by.
type index struct {
	*State
	networks map[string]*v1alpha1.SecondaryNetwork
	pools    map[string]*Pool
	claims   map[string]*Claim
	// owned are the interfaces of the cluster by Key, the best first.
	owned map[string][]*Interface
}

func indexOf(s *State) *index {
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
			continue // somebody else's
		}
		key := Key(n.Tags[ClaimTag], n.Tags[NetworkTag])
		x.owned[key] = append(x.owned[key], n)
	}
	for _, all := range x.owned {
		// Of two that are for the same, the one in use is kept, then that with the lower ID.
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

// zone is a network's part in a zone; nil if it has none.
func zone(n *v1alpha1.SecondaryNetwork, name string) *v1alpha1.SecondaryNetworkZone {
	for i := range n.Spec.Zones {
		if n.Spec.Zones[i].Zone == name {
			return &n.Spec.Zones[i]
		}
	}
	return nil
}
