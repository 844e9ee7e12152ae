package declared

import (
	"context"

	"k8s.io/apimachinery/pkg/types"

	"croft.dev/croft/internal/manifest"
)

// verdict is a problem of one version of an object.
type verdict struct {
	uid        types.UID
	generation int64
	problem    manifest.Problem
}

// verdictsOn adds an entry's problems to all.
func verdictsOn[T any](all map[verdict]bool, entries map[string]Entry[T]) {
	for _, e := range entries {
		for _, p := range e.Problems {
			all[verdict{e.UID, e.Generation, p}] = true
		}
	}
}

// verdicts returns the problems of all objects.
func (s *Snapshot) verdicts() map[verdict]bool {
	all := map[verdict]bool{}
	verdictsOn(all, s.platforms)
	verdictsOn(all, s.pools)
	verdictsOn(all, s.tenants)
	verdictsOn(all, s.networks)
	return all
}

// withoutUnconfirmed removes the entries with problems that are not confirmed, and
// reports whether there were any.
func withoutUnconfirmed[T any](entries map[string]Entry[T], confirmed map[verdict]bool) (removed bool) {
	for name, e := range entries {
		for _, p := range e.Problems {
			if !confirmed[verdict{e.UID, e.Generation, p}] {
				delete(entries, name)
				removed = true
				break
			}
		}
	}
	return removed
}

// judge confirms the problems of a snapshot that was built from the cache. Each kind has
// its own informer, so the cache may show a Tenant before it shows the Pool that was
// created first. Therefore a problem counts only if the API server's objects have it, too.
// judge removes entries with unconfirmed problems from the snapshot, and the status of
// their objects stays unchanged. A problem that was confirmed before costs no request.
//
// judge reports whether the snapshot can be published, and whether it is whole. Without its
// Platform no object can be checked.
func (s *Store) judge(ctx context.Context, next *Snapshot) (publish, whole bool, err error) {
	problems := next.verdicts()
	confirmed := s.confirmed
	if !next.HasPlatform || !subset(problems, confirmed) {
		var d *manifest.Declaration
		if d, err = read(ctx, s.live); err == nil {
			live := build(d)
			if live.HasPlatform && !next.HasPlatform {
				return false, false, nil
			}
			confirmed = live.verdicts()
		} else if !next.HasPlatform {
			return false, false, err
		}
	}
	if withoutUnconfirmed(next.platforms, confirmed) {
		return false, false, err
	}
	removed := withoutUnconfirmed(next.pools, confirmed)
	removed = withoutUnconfirmed(next.tenants, confirmed) || removed
	removed = withoutUnconfirmed(next.networks, confirmed) || removed
	s.confirmed = next.verdicts()
	return true, !removed, err
}

func subset(all, of map[verdict]bool) bool {
	for v := range all {
		if !of[v] {
			return false
		}
	}
	return true
}
