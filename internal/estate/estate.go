// Package estate turns what people declared into one valid whole.
//
// An estate is a Platform with its Pools, Tenants and SecondaryNetworks,
// defaulted and checked together. Everything here is a pure function: reading
// files and clusters is left to the callers. What Build returns is valid; the
// walls never have to ask again.
package estate

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/manifest"
)

// Estate is the valid whole, from which the walls are made. It shares memory with the
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
	// Groups are all groups with rights, sorted, as the API server sees them: the
	// Platform's, all tenants', and those with which tenants may share. Only the
	// Platform's objects may depend on it: tenants are not reconciled when it changes.
	// Kubernetes' own (system:) are not among them, nor is the star of a shareWith.
	Groups []string
}

// Pool is a Pool with the values that it inherits from the Platform.
type Pool struct {
	Name string
	v1alpha1.PoolSpec
	// Class is the node class in force: the Pool's own or the Platform's. One of AWS
	// is both, and in full: the short forms amiAlias, discovery and tagKeys are empty,
	// the tags are all that instances get, and no default is left out.
	Class v1alpha1.NodeClass
}

// Network is a SecondaryNetwork, without what changes by itself.
type Network struct {
	Name string
	v1alpha1.SecondaryNetworkSpec
}

// Tenant is a Tenant with every default and every derived grant written out.
type Tenant struct {
	Name string
	// Pools are the pools that pods may run on, the default first. Never empty.
	Pools []string
	// Namespaces are never empty: those declared, in that order, then Requested, sorted.
	Namespaces []string
	// Requested are the namespaces that the tenant asked for itself, each with the
	// namespace that its TenantNamespace is in.
	Requested map[string]string
	// MayRequest is the maximum number of requested namespaces.
	MayRequest int
	// Access holds groups with the Platform's prefix already put before them. Access
	// that has ended is not in it.
	Access []v1alpha1.Access
	// Domains are all hosts that the tenant may serve, exact or "*.", derived
	// ones first.
	Domains []string
	// Quota is for all namespaces together; nothing is counted if it is empty.
	Quota corev1.ResourceList
	// Minimums are the shares that namespaces have in any case, by namespace.
	Minimums map[string]corev1.ResourceList
	// Shares divide the quota among the namespaces: evenly apart from minimums, unless
	// the caller sets others.
	Shares map[string]corev1.ResourceList
	Limits *v1alpha1.ContainerLimits
	Egress v1alpha1.Egress
	// AllowCIDRs widen restricted egress.
	AllowCIDRs []string
	// Networks are the secondary networks that pods may be attached to, in the order in
	// which they were granted.
	Networks    []Network
	PodSecurity v1alpha1.PodSecurityLevel
	// Allowances have every field set: lists are never nil.
	Allowances v1alpha1.Allowances
	// Sources are what Flux applies for the tenant, sorted by name.
	Sources  []Source
	CostCode string
	Deletion v1alpha1.DeletionPolicy
}

// Declares reports whether a namespace is among those that the tenant declares.
func (t *Tenant) Declares(namespace string) bool {
	_, requested := t.Requested[namespace]
	return !requested && slices.Contains(t.Namespaces, namespace)
}

// Tenant returns the tenant of that name, or nil.
func (e *Estate) Tenant(name string) *Tenant {
	i, ok := slices.BinarySearchFunc(e.Tenants, name, func(t *Tenant, n string) int { return cmp.Compare(t.Name, n) })
	if !ok {
		return nil
	}
	return e.Tenants[i]
}

// Pool returns the pool of that name, or nil.
func (e *Estate) Pool(name string) *Pool {
	i, ok := slices.BinarySearchFunc(e.Pools, name, func(p *Pool, n string) int { return cmp.Compare(p.Name, n) })
	if !ok {
		return nil
	}
	return e.Pools[i]
}
