// Package declared maintains the cluster's declared objects as one checked estate, which
// all controllers read.
//
// An estate can only be checked as a whole, and there may be thousands of tenants.
// Therefore it is built once for any number of changes, not once for each reconciled
// object, and only objects with a different result are reconciled again.
package declared

import (
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/document"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/declare/manifest"
)

// Kind is a kind that people declare.
type Kind string

// The kinds that people declare.
const (
	Platform         Kind = "Platform"
	Pool             Kind = "Pool"
	Tenant           Kind = "Tenant"
	SecondaryNetwork Kind = "SecondaryNetwork"
)

// Entry is the result of checking one declared object.
type Entry[T any] struct {
	UID types.UID
	// Generation is the object's generation when the estate was built. A newer object is
	// reconciled with the next estate.
	Generation int64
	// Value is the object with all inherited values. It is nil if the object is invalid or
	// there is no Platform.
	Value *T
	// Problems are the reasons why the object is invalid.
	Problems document.Problems
	// Users are the sorted names of the objects that refer to this one. Only pools and
	// secondary networks have users.
	Users []string
	// Revision changes whenever a field above, or the Platform, changes.
	Revision uint64
	// RulesRevision changes with Revision, unless nothing but a tenant's declared objects changed: the
	// API server admits the tenant's pods as before.
	RulesRevision uint64
}

// Snapshot is the estate at one moment. It is immutable.
type Snapshot struct {
	// Platform is nil if there is no valid Platform.
	Platform *estate.Platform
	// HasPlatform is true even if the Platform is invalid.
	HasPlatform bool

	// nextChange is the next time at which the estate changes with time, or the zero time.
	nextChange time.Time

	platforms map[string]Entry[estate.Platform]
	pools     map[string]Entry[estate.Pool]
	tenants   map[string]Entry[estate.Tenant]
	networks  map[string]Entry[v1alpha1.SecondaryNetwork]
	// claimants maps each namespace to the tenant that declares it or was granted it.
	claimants map[string]string
}

// PlatformEntry returns the Platform's result.
func (s *Snapshot) PlatformEntry() (Entry[estate.Platform], bool) {
	e, ok := s.platforms[v1alpha1.PlatformName]
	return e, ok
}

// Pool returns a Pool's result.
func (s *Snapshot) Pool(name string) (Entry[estate.Pool], bool) {
	e, ok := s.pools[name]
	return e, ok
}

// Tenant returns a Tenant's result.
func (s *Snapshot) Tenant(name string) (Entry[estate.Tenant], bool) {
	e, ok := s.tenants[name]
	return e, ok
}

// Network returns a SecondaryNetwork's result.
func (s *Snapshot) Network(name string) (Entry[v1alpha1.SecondaryNetwork], bool) {
	e, ok := s.networks[name]
	return e, ok
}

// Claimant returns the tenant that declares a namespace, or was granted it, or "".
func (s *Snapshot) Claimant(namespace string) string { return s.claimants[namespace] }

// identity identifies the object of a problem.
type identity struct{ kind, name string }

// buildSnapshot checks a declaration as a whole. compare sets the revisions later.
func buildSnapshot(d *manifest.Declaration) *Snapshot {
	built, problems := estate.Build(d)
	of := map[identity]document.Problems{}
	for _, p := range problems {
		id := identity{p.Kind, p.Name}
		of[id] = append(of[id], p)
	}
	s := &Snapshot{
		HasPlatform: len(d.Platforms) > 0,
		platforms:   map[string]Entry[estate.Platform]{},
		pools:       map[string]Entry[estate.Pool]{},
		tenants:     map[string]Entry[estate.Tenant]{},
		networks:    map[string]Entry[v1alpha1.SecondaryNetwork]{},
		claimants:   map[string]string{},
	}
	if built != nil {
		s.nextChange = built.FindNextChange()
	}
	for i := range d.Platforms {
		p := &d.Platforms[i]
		entry := Entry[estate.Platform]{UID: p.UID, Generation: p.Generation, Problems: of[identity{string(Platform), p.Name}]}
		if p.Name == v1alpha1.PlatformName && built != nil && len(entry.Problems) == 0 {
			entry.Value = &built.Platform
			s.Platform = entry.Value
		}
		s.platforms[p.Name] = entry
	}

	poolUsers, networkUsers := map[string][]string{}, map[string][]string{}
	for i := range d.Tenants {
		t := &d.Tenants[i]
		entry := Entry[estate.Tenant]{UID: t.UID, Generation: t.Generation, Problems: of[identity{string(Tenant), t.Name}]}
		if s.Platform != nil && len(entry.Problems) == 0 {
			entry.Value = built.FindTenant(t.Name)
		}
		s.tenants[t.Name] = entry
		for _, pool := range append(slices.Clone(t.Spec.Pools), t.Spec.Pool) {
			poolUsers[pool] = append(poolUsers[pool], t.Name)
		}
		s.recordClaims(t)
	}
	for i := range d.Pools {
		p := &d.Pools[i]
		entry := Entry[estate.Pool]{UID: p.UID, Generation: p.Generation, Problems: of[identity{string(Pool), p.Name}], Users: sortUnique(poolUsers[p.Name])}
		if s.Platform != nil && len(entry.Problems) == 0 {
			entry.Value = built.FindPool(p.Name)
		}
		s.pools[p.Name] = entry
		for _, network := range p.Spec.SecondaryNetworks {
			networkUsers[network] = append(networkUsers[network], p.Name)
		}
	}
	for i := range d.Networks {
		n := &d.Networks[i]
		s.networks[n.Name] = Entry[v1alpha1.SecondaryNetwork]{
			UID: n.UID, Generation: n.Generation, Problems: of[identity{string(SecondaryNetwork), n.Name}], Users: sortUnique(networkUsers[n.Name]),
		}
	}
	return s
}

// recordClaims records a tenant's namespaces. If two tenants declare a namespace, a valid tenant
// takes precedence over an invalid one.
func (s *Snapshot) recordClaims(t *v1alpha1.Tenant) {
	names := t.Spec.Namespaces
	if value := s.tenants[t.Name].Value; value != nil {
		names = value.Namespaces
	} else if len(names) == 0 {
		names = []string{t.Name}
	}
	for _, name := range names {
		if _, taken := s.claimants[name]; !taken || s.tenants[t.Name].Value != nil {
			s.claimants[name] = t.Name
		}
	}
}

func sortUnique(names []string) []string {
	slices.Sort(names)
	return slices.Compact(names)
}

// listNames returns every declared object of a kind.
func (s *Snapshot) listNames(kind Kind) []string {
	switch kind {
	case Platform:
		return slices.Collect(maps.Keys(s.platforms))
	case Pool:
		return slices.Collect(maps.Keys(s.pools))
	case Tenant:
		return slices.Collect(maps.Keys(s.tenants))
	default:
		return slices.Collect(maps.Keys(s.networks))
	}
}
