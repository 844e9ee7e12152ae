// Package estate builds one validated estate from declared objects.
//
// An estate is a Platform with its Pools, Tenants and SecondaryNetworks, defaulted and checked
// together. Everything here is a pure function: the callers read files and clusters. The result
// of Build is valid, so the walls need no further checks.
package estate

import (
	"cmp"
	"slices"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/document"
)

// Estate is the validated whole, from which the walls are built. It shares memory with the
// Declaration that it was built from; both are read-only from then on.
type Estate struct {
	Platform Platform
	// Pools, Tenants and Networks are sorted by name.
	Pools    []*Pool
	Tenants  []*Tenant
	Networks []*v1alpha1.SecondaryNetwork
	// Warnings are about accepted values that are most likely mistakes.
	Warnings document.Problems
}

// Platform is the defaulted Platform.
type Platform struct {
	v1alpha1.PlatformSpec
	// Groups are all groups with rights, sorted and with the prefix that the API server
	// expects: the Platform's, all tenants', and the groups with which tenants may share. Only
	// the Platform's objects may depend on it: tenants are not reconciled when it changes. It
	// contains neither the built-in groups of Kubernetes (system:) nor the star of a shareWith.
	Groups []string
	// Connections are all connections between tenants to which both have agreed. Only attacks
	// may depend on it.
	Connections []Connection
}

// Pool is a Pool with the values that it inherits from the Platform.
type Pool struct {
	Name string
	v1alpha1.PoolSpec
	// Class is the effective node class: the Pool's own or the Platform's. A class of AWS is
	// merged from both and complete: the short forms amiAlias, discovery and tagKeys are empty,
	// the tags are all tags that instances get, and every default is set.
	Class v1alpha1.NodeClass
}

// Network is a SecondaryNetwork's name and spec, without the status, which changes at run time.
type Network struct {
	Name string
	v1alpha1.SecondaryNetworkSpec
}

// FindTenant returns the tenant with the name, or nil.
func (e *Estate) FindTenant(name string) *Tenant {
	i, ok := slices.BinarySearchFunc(e.Tenants, name, func(t *Tenant, n string) int { return cmp.Compare(t.Name, n) })
	if !ok {
		return nil
	}
	return e.Tenants[i]
}

// FindPool returns the pool with the name, or nil.
func (e *Estate) FindPool(name string) *Pool {
	i, ok := slices.BinarySearchFunc(e.Pools, name, func(p *Pool, n string) int { return cmp.Compare(p.Name, n) })
	if !ok {
		return nil
	}
	return e.Pools[i]
}
