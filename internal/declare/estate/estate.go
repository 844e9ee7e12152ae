// Package estate builds one validated estate from declared objects.
//
// An estate is a Platform with its Pools, Tenants and SecondaryNetworks, defaulted and checked
// together. Everything here is a pure function: the callers read files and clusters. The result
// of Build is valid, so the walls need no further checks.
package estate

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/manifest"
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
	Warnings manifest.Problems
}

// Platform is the defaulted Platform.
type Platform struct {
	v1alpha1.PlatformSpec
	// Groups are all groups with rights, sorted and with the prefix that the API server
	// expects: the Platform's, all tenants', and the groups with which tenants may share. Only
	// the Platform's objects may depend on it: tenants are not reconciled when it changes. It
	// contains neither the built-in groups of Kubernetes (system:) nor the star of a shareWith.
	Groups []string
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

// Tenant is a Tenant with every default and every derived grant set.
type Tenant struct {
	Name string
	// Pools are the pools that pods may run on, with the default pool first. Never empty.
	Pools []string
	// Namespaces are never empty: the declared ones in their order, then Requested, sorted.
	Namespaces []string
	// Requested maps each namespace that the tenant requested to the namespace of its
	// TenantNamespace.
	Requested map[string]string
	// MayRequest is the maximum number of requested namespaces.
	MayRequest int
	// Access has the groups with the Platform's prefix. It does not contain access that has
	// ended.
	Access []v1alpha1.Access
	// Domains are all hosts that the tenant may serve, exact or "*.", starting with the derived
	// ones.
	Domains []string
	// Quota applies to all namespaces together. If it is empty, nothing is counted.
	Quota corev1.ResourceList
	// Minimums maps namespaces to the shares that are reserved for them.
	Minimums map[string]corev1.ResourceList
	// Shares divides the quota among the namespaces: evenly apart from minimums, unless the
	// caller sets other shares.
	Shares map[string]corev1.ResourceList
	Limits *v1alpha1.ContainerLimits
	Egress v1alpha1.Egress
	// AllowCIDRs are additional destinations of restricted egress.
	AllowCIDRs []string
	// Networks are the secondary networks to which pods may be attached, in the order in which
	// they were granted.
	Networks    []Network
	PodSecurity v1alpha1.PodSecurityLevel
	// Allowances has every field set: lists are never nil.
	Allowances v1alpha1.Allowances
	// Sources are the tenant's sources for Flux or Argo CD, sorted by name.
	Sources  []Source
	CostCode string
	Deletion v1alpha1.DeletionPolicy
}

// Declares reports whether the tenant declares a namespace, as opposed to requesting it.
func (t *Tenant) Declares(namespace string) bool {
	_, requested := t.Requested[namespace]
	return !requested && slices.Contains(t.Namespaces, namespace)
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
