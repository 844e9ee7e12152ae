// Package plan computes which CIDR reservations a platform team needs in its subnets for
// secondary networks, how many pods they are enough for, and whether the pools' instance
// types have enough interfaces. It is pure.
package plan

import (
	"fmt"
	"slices"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/declare/secondary"
)

// Plan has the reservations and interfaces that a file's secondary networks need.
type Plan struct {
	// Ranges are all reservations, by network and zone.
	Ranges []Range `json:"ranges"`
	// Pools are the pools whose nodes have secondary networks.
	Pools []Pool `json:"pools"`
}

// Range is a reservation with its capacity.
type Range struct {
	Network string `json:"network"`
	Zone    string `json:"zone"`
	Subnet  string `json:"subnet"`
	CIDR    string `json:"cidr"`
	PodCIDR string `json:"podCIDR"`
	Gateway string `json:"gateway,omitempty"`
	// Excluded are the addresses in the reservation that pods cannot have: the VPC's
	// reserved addresses, and the gateway.
	Excluded []string `json:"excluded,omitempty"`
	// Pods is the maximum number of concurrent pods. Nodes is the maximum number of nodes,
	// whose interfaces take their own addresses from the rest of the subnet.
	Pods  uint64 `json:"pods"`
	Nodes uint64 `json:"nodes"`
	// PrefixesPerNode is the network's setting. Type is the type of the reservation.
	PrefixesPerNode int32  `json:"prefixesPerNode,omitempty"`
	Type            string `json:"reservationType"`
	// Tenants are the tenants that are granted the network.
	Tenants []string `json:"tenants"`
}

// Pool is a pool with its possible instance types.
type Pool struct {
	Name     string   `json:"name"`
	Networks []string `json:"networks"`
	// Zones are the zones in which every network has a subnet.
	Zones []string `json:"zones"`
	// Types are the sorted instance types that the pool lists. For a pool that lists none,
	// there are too many; then Choices states how many have enough interfaces.
	Types   []Type `json:"types,omitempty"`
	Choices string `json:"choices,omitempty"`
}

// Type is an AWS instance type for nodes with secondary networks.
type Type struct {
	Name string `json:"name"`
	// Known is false for types that are missing in the table of limits.
	Known bool `json:"known"`
	// Interfaces is the maximum number of interfaces. Needed is the minimum number that a
	// node needs: its primary one, and one for each network.
	Interfaces int `json:"interfaces,omitempty"`
	Needed     int `json:"needed"`
	// Left are the interfaces for the cluster's own CNI, including the node's primary one.
	Left int `json:"left,omitempty"`
	// Pods is the number of pods of a node in each network with one secondary address for
	// each pod. WithPrefixes is the number with /28 prefixes.
	Pods         int `json:"pods,omitempty"`
	WithPrefixes int `json:"withPrefixes,omitempty"`
}

// Build returns the plan of an estate.
func Build(e *estate.Estate) Plan {
	p := Plan{Ranges: []Range{}, Pools: []Pool{}}
	specs := map[string]*v1alpha1.SecondaryNetworkSpec{}
	for _, n := range e.Networks {
		specs[n.Name] = &n.Spec
		for _, r := range secondary.Reservations(n.Name, &n.Spec) {
			p.Ranges = append(p.Ranges, buildRange(r, n.Spec.PrefixesPerNode, listTenants(e, n.Name)))
		}
	}
	for _, pool := range e.Pools {
		if len(pool.SecondaryNetworks) > 0 {
			p.Pools = append(p.Pools, buildPool(pool, specs))
		}
	}
	return p
}

func buildRange(r secondary.Reservation, perNode int32, tenants []string) Range {
	all := Range{
		Network: r.Network, Zone: r.Zone, Subnet: r.Subnet, CIDR: r.CIDR.String(), PodCIDR: r.Pods.String(),
		Pods: r.CountUsable(), Nodes: r.CountLeft(), Type: explicit, Tenants: tenants,
	}
	if perNode > 0 {
		prefixes := r.CountPrefixes()
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

func listTenants(e *estate.Estate, network string) []string {
	all := []string{}
	for _, t := range e.Tenants {
		if slices.ContainsFunc(t.Networks, func(n estate.Network) bool { return n.Name == network }) {
			all = append(all, t.Name)
		}
	}
	return all
}

func buildPool(pool *estate.Pool, specs map[string]*v1alpha1.SecondaryNetworkSpec) Pool {
	p := Pool{Name: pool.Name, Networks: pool.SecondaryNetworks}
	var networks []*v1alpha1.SecondaryNetworkSpec
	for _, name := range pool.SecondaryNetworks {
		networks = append(networks, specs[name])
	}
	p.Zones = secondary.CommonZones(networks...)
	types, listed := secondary.PossibleTypes(&pool.Instances)
	if !listed {
		small := secondary.FindTooSmall(types, len(networks))
		p.Choices = fmt.Sprintf("%d of %d types have enough", len(types)-len(small), len(types))
		return p
	}
	for _, name := range types {
		p.Types = append(p.Types, buildType(name, len(networks)))
	}
	return p
}

func buildType(name string, networks int) Type {
	limits, ok := secondary.LimitsOf(name)
	t := Type{Name: name, Known: ok, Needed: networks + 1}
	if ok {
		t.Interfaces, t.Left = limits.Interfaces, max(0, limits.Interfaces-networks)
		t.Pods = limits.Addresses - 1
		t.WithPrefixes = t.Pods * secondary.PrefixAddresses
	}
	return t
}

// description identifies a reservation in the AWS account.
func (r *Range) description() string { return "croft: pods of network " + r.Network + " in " + r.Zone }
