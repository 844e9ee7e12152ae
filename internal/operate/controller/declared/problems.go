package declared

import (
	"context"

	"k8s.io/apimachinery/pkg/types"

	"croft.dev/croft/internal/declare/document"
	"croft.dev/croft/internal/declare/manifest"
)

// objectProblem is a problem of one version of an object.
type objectProblem struct {
	uid        types.UID
	generation int64
	problem    document.Problem
}

// addProblems adds an entry's problems to all.
func addProblems[T any](all map[objectProblem]bool, entries map[string]Entry[T]) {
	for _, e := range entries {
		for _, p := range e.Problems {
			all[objectProblem{e.UID, e.Generation, p}] = true
		}
	}
}

// listProblems returns the problems of all objects.
func (s *Snapshot) listProblems() map[objectProblem]bool {
	all := map[objectProblem]bool{}
	addProblems(all, s.platforms)
	addProblems(all, s.pools)
	addProblems(all, s.tenants)
	addProblems(all, s.networks)
	return all
}

// removeUnconfirmed removes the entries with problems that are not confirmed, and
// reports whether there were any.
func removeUnconfirmed[T any](entries map[string]Entry[T], confirmed map[objectProblem]bool) (removed bool) {
	for name, e := range entries {
		for _, p := range e.Problems {
			if !confirmed[objectProblem{e.UID, e.Generation, p}] {
				delete(entries, name)
				removed = true
				break
			}
		}
	}
	return removed
}

// confirmProblems confirms the problems of a snapshot that was built from the cache. Each kind has
// its own informer, so the cache may show a Tenant before it shows the Pool that was
// created first. Therefore a problem counts only if the API server's objects have it, too.
// judge removes entries with unconfirmed problems from the snapshot, and the status of
// their objects stays unchanged. A problem that was confirmed before costs no request.
//
// judge reports whether the snapshot can be published, and whether it is whole. Without its
// Platform no object can be checked.
func (s *Store) confirmProblems(ctx context.Context, next *Snapshot) (publish, whole bool, err error) {
	problems := next.listProblems()
	confirmed := s.confirmed
	if !next.HasPlatform || !isSubset(problems, confirmed) {
		var d *manifest.Declaration
		if d, err = readDeclaration(ctx, s.live, s.clock.Now()); err == nil {
			live := buildSnapshot(d)
			if live.HasPlatform && !next.HasPlatform {
				return false, false, nil
			}
			confirmed = live.listProblems()
		} else if !next.HasPlatform {
			return false, false, err
		}
	}
	if removeUnconfirmed(next.platforms, confirmed) {
		return false, false, err
	}
	removed := removeUnconfirmed(next.pools, confirmed)
	removed = removeUnconfirmed(next.tenants, confirmed) || removed
	removed = removeUnconfirmed(next.networks, confirmed) || removed
	s.confirmed = next.listProblems()
	return true, !removed, err
}

func isSubset(all, of map[objectProblem]bool) bool {
	for v := range all {
		if !of[v] {
			return false
		}
	}
	return true
}
