package draft

import (
	"maps"
	"slices"

	"croft.dev/croft/internal/migrate/source"
	"croft.dev/croft/internal/wording"
)

// Place puts a tenant on a pool. A later, different placement is reported.
func (d *Draft) Place(t *Tenant, name string, by source.Field, pool string) {
	switch {
	case t.Spec.Pool == "" && len(t.Spec.Pools) == 0:
		t.Spec.Pool, t.Placed = pool, by
	case t.Spec.Pool != pool && !slices.Contains(t.Spec.Pools, pool):
		at := "what was read before"
		if t.Placed.Object() != nil {
			at = t.Placed.Object().ID() + " at " + t.Placed.Object().Place()
		}
		by.NotKept("%s puts tenant %s on pool %s already, which counts", at, name, t.Spec.Pool)
		d.Problem(by, "puts tenant %s on pool %s, and %s on pool %s, which counts: make the two agree", name, pool, at, t.Spec.Pool)
		return
	}
	by.Kept(TenantField(name, "pool"))
	if _, known := d.Pools[pool]; !known {
		names := slices.Sorted(maps.Keys(d.Pools))
		d.Told[name] = true
		d.Problem(by, "there is no pool %s among what was read%s; tenant %s is left out of croft.yaml until it has one", pool, wording.Suggest(pool, names), name)
	}
}

// PoolNamed is the pool whose nodes have a value of the key.
func (d *Draft) PoolNamed(value string) string {
	for _, name := range slices.Sorted(maps.Keys(d.Pools)) {
		if name == value {
			return name
		}
	}
	for _, name := range slices.Sorted(maps.Keys(d.Pools)) {
		if slices.Contains(d.Pools[name].Values, value) {
			return name
		}
	}
	return AsName(value)
}
