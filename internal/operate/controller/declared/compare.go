package declared

import (
	"k8s.io/apimachinery/pkg/api/equality"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
)

// equals reports whether two entries differ in nothing but their revisions.
func (e Entry[T]) equals(other Entry[T]) bool {
	other.Revision, other.RulesRevision = e.Revision, e.RulesRevision
	return equality.Semantic.DeepEqual(e, other)
}

// omitObjects returns a tenant's entry without its declared objects. It omits the generation, too: the
// other fields contain everything that follows from the spec.
func omitObjects(e Entry[estate.Tenant]) Entry[estate.Tenant] {
	e.Generation = 0
	if e.Value != nil {
		tenant := *e.Value
		tenant.Objects = nil
		e.Value = &tenant
	}
	return e
}

// updateRevisions assigns a new revision to the entries that changed since an older snapshot, and
// returns their names by kind. Removed entries are changed, too.
func (s *Snapshot) updateRevisions(old *Snapshot, revision uint64) map[Kind][]string {
	if old == nil {
		old = &Snapshot{}
	}
	// Every wall reads the Platform, except for the fields that are collected from tenants.
	all := s.HasPlatform != old.HasPlatform || !equality.Semantic.DeepEqual(getPlatformSpec(s.Platform), getPlatformSpec(old.Platform))
	changed := map[Kind][]string{
		Platform:         updateEntries(s.platforms, old.platforms, all, revision),
		Pool:             updateEntries(s.pools, old.pools, all, revision),
		Tenant:           updateEntries(s.tenants, old.tenants, all, revision),
		SecondaryNetwork: updateEntries(s.networks, old.networks, all, revision),
	}
	s.updateRulesRevisions(old, all)
	return changed
}

// updateRulesRevisions sets the RulesRevision of tenants. all is set if their rules changed with the
// Platform.
func (s *Snapshot) updateRulesRevisions(old *Snapshot, all bool) {
	for name, entry := range s.tenants {
		was, known := old.tenants[name]
		entry.RulesRevision = entry.Revision
		if known && !all && (entry.Revision == was.Revision || omitObjects(entry).equals(omitObjects(was))) {
			entry.RulesRevision = was.RulesRevision
		}
		s.tenants[name] = entry
	}
}

// getPlatformSpec returns the declared spec of a Platform without the objects of all tenants' namespaces,
// which are part of each tenant; or nil if there is no Platform.
func getPlatformSpec(p *estate.Platform) *v1alpha1.PlatformSpec {
	if p == nil {
		return nil
	}
	spec := p.PlatformSpec
	spec.TenantDefaults.Objects = nil
	return &spec
}

func updateEntries[T any](now, before map[string]Entry[T], all bool, revision uint64) []string {
	var names []string
	for name, entry := range now {
		was, known := before[name]
		if known && !all && entry.equals(was) {
			entry.Revision = was.Revision
		} else {
			entry.Revision = revision
			names = append(names, name)
		}
		now[name] = entry
	}
	for name := range before {
		if _, ok := now[name]; !ok {
			names = append(names, name)
		}
	}
	return names
}
