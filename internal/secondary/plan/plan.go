// Package plan says what a platform team has to reserve in its subnets for secondary
// networks, how many pods that carries, and whether the pools' instance types have the
// interfaces for it. It is pure: an estate in, values out.
package plan

import (
	"fmt"
	"slices"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/estate"
	"croft.dev/croft/internal/secondary"
)

// Plan is what a file's secondary networks need.
type Plan struct {
	// Ranges are all reservations, by network and zone.
	Ranges []Range `json:"ranges"`
	// Pools are those whose nodes have secondary networks.
	Pools []Pool `json:"pools"`
}

// Range is a reservation, and what it carries.
type Range struct {
	Network string `json:"network"`
	Zone    string `json:"zone"`
	Subnet  string `json:"subnet"`
	CIDR    string `json:"cidr"`
	PodCIDR string `json:"podCIDR"`
	Gateway string `json:"gateway,omitempty"`
	// Excluded are the addresses of the reservation that the VPC keeps.
	Excluded []string `json:"excluded,omitempty"`
	// Pods is how many pods there may be at once, and Nodes how many nodes: their
	// interfaces take their own addresses from the rest of the subnet.
	Pods  uint64 `json:"pods"`
	Nodes uint64 `json:"nodes"`
	// PrefixesPerNode are the network's, and Type is that of the reservation.
	PrefixesPerNode int32  `json:"prefixesPerNode,omitempty"`
	Type            string `json:"reservationType"`
	// Tenants are those that are granted the network.
	Tenants []string `json:"tenants"`
}

// Pool is a pool with the instance types that it may have.
type Pool struct {
	Name     string   `json:"name"`
	Networks []string `json:"networks"`
	// Zones are those in which every network has a subnet.
	Zones []string `json:"zones"`
	// Types are the instance types that the pool names, sorted; of a pool that names
	// none there are too many, and Choices says how many of them have enough interfaces.
	Types   []Type `json:"types,omitempty"`
	Choices string `json:"choices,omitempty"`
}

// Type is an instance type of AWS as a node with secondary networks.
type Type struct {
	Name string `json:"name"`
	// Known is false for types that the table of limits does not have.
	Known bool `json:"known"`
	// Interfaces is how many there may be, and Needed how many a node needs at least:
	// its own, and one for each network.
	Interfaces int `json:"interfaces,omitempty"`
	Needed     int `json:"needed"`
	// Left are those that remain to the cluster's own CNI, the node's own among them.
	Left int `json:"left,omitempty"`
	// Pods is how many pods of a node each network carries with one secondary address
	// for each pod, and WithPrefixes with /28 prefixes.
	Pods         int `json:"pods,omitempty"`
	WithPrefixes int `json:"withPrefixes,omitempty"`
}

// Of is the plan of an estate.
func Of(e *estate.Estate) Plan {
	p := Plan{Ranges: []Range{}, Pools: []Pool{}}
	specs := map[string]*v1alpha1.SecondaryNetworkSpec{}
	for _, n := range e.Networks {
		specs[n.Name] = &n.Spec
		for _, r := range secondary.Reservations(n.Name, &n.Spec) {
			p.Ranges = append(p.Ranges, rangeOf(r, n.Spec.PrefixesPerNode, tenantsOf(e, n.Name)))
		}
	}
	for _, pool := range e.Pools {
		if len(pool.SecondaryNetworks) > 0 {
			p.Pools = append(p.Pools, poolOf(pool, specs))
		}
	}
	return p
}

func rangeOf(r secondary.Reservation, perNode int32, tenants []string) Range {
	all := Range{
		Network: r.Network, Zone: r.Zone, Subnet: r.Subnet, CIDR: r.CIDR.String(), PodCIDR: r.Pods.String(),
		Pods: r.Usable(), Nodes: r.Left(), Type: explicit, Tenants: tenants,
	}
	if perNode > 0 {
		prefixes := r.PrefixesIn()
		all.PrefixesPerNode, all.Type = perNode, prefix
		all.Pods, all.Nodes = prefixes*secondary.PrefixAddresses, min(all.Nodes, prefixes/uint64(perNode))
	}
	if r.Gateway.IsValid() {
		all.Gateway = r.Gateway.String()
	}
	for _, excluded := range r.Excluded() {
		all.Excluded = append(all.Excluded, excluded.String())
	}
	return all
}

func tenantsOf(e *estate.Estate, network string) []string {
	all := []string{}
	for _, t := range e.Tenants {
		if slices.ContainsFunc(t.Networks, func(n estate.Network) bool { return n.Name == network }) {
			all = append(all, t.Name)
		}
	}
	return all
}

func poolOf(pool *estate.Pool, specs map[string]*v1alpha1.SecondaryNetworkSpec) Pool {
	p := Pool{Name: pool.Name, Networks: pool.SecondaryNetworks}
	var networks []*v1alpha1.SecondaryNetworkSpec
	for _, name := range pool.SecondaryNetworks {
		networks = append(networks, specs[name])
	}
	p.Zones = secondary.Zones(networks...)
	types, listed := secondary.Types(&pool.Instances)
	if !listed {
		small := secondary.TooSmall(types, len(networks))
		p.Choices = fmt.Sprintf("%d of %d types have enough", len(types)-len(small), len(types))
		return p
	}
	for _, name := range types {
		p.Types = append(p.Types, typeOf(name, len(networks)))
	}
	return p
}

func typeOf(name string, networks int) Type {
	limits, known := secondary.LimitsOf(name)
	t := Type{Name: name, Known: known, Needed: networks + 1}
	if known {
		t.Interfaces, t.Left = limits.Interfaces, max(0, limits.Interfaces-networks)
		t.Pods = limits.Addresses - 1
		t.WithPrefixes = t.Pods * secondary.PrefixAddresses
	}
	return t
}

// description is how a reservation is recognised in the account.
func (r *Range) description() string { return "croft: pods of network " + r.Network + " in " + r.Zone }
