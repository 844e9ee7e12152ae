package draft

import (
	"maps"
	"slices"
	"strings"

	"croft.dev/croft/internal/adoption/migrate/source"
	"croft.dev/croft/internal/declare/wording"
)

// Place places a tenant on one or more pools. If the tenant was placed before, the pools that
// both placements allow remain. If there are none, the earlier placement is kept, and the
// difference is a problem.
func (d *Draft) Place(t *Tenant, name string, source source.Field, pools ...string) {
	before := t.Pools()
	common := slices.DeleteFunc(slices.Clone(before), func(p string) bool { return !slices.Contains(pools, p) })
	switch {
	case len(before) == 0:
		t.setPools(pools)
		t.Placed = source
	case len(common) == 0:
		d.reportConflict(t, name, source, pools)
		return
	case t.Placed.Object() != nil:
		t.setPools(common)
	}
	source.MarkKept(TenantField(name, "pool"))
	for _, pool := range t.Pools() {
		if _, ok := d.Pools[pool]; !ok {
			d.Reported[name] = true
			d.ReportProblem(source, "the input has no pool %s%s; croft.yaml omits tenant %s until it has one",
				pool, wording.Suggest(pool, slices.Sorted(maps.Keys(d.Pools))), name)
		}
	}
}

func (d *Draft) reportConflict(t *Tenant, name string, by source.Field, pools []string) {
	at := "an earlier object of the input"
	if t.Placed.Object() != nil {
		at = t.Placed.Object().ID() + " at " + t.Placed.Object().Place()
	}
	first, second := strings.Join(t.Pools(), " or "), strings.Join(pools, " or ")
	by.MarkNotKept("%s already puts tenant %s on pool %s, and takes precedence", at, name, first)
	d.ReportProblem(by, "puts tenant %s on pool %s, but %s puts it on pool %s, and takes precedence: make the two agree", name, second, at, first)
}

// Pools returns the pools that the tenant's pods may run on.
func (t *Tenant) Pools() []string {
	if t.Spec.Pool != "" {
		return []string{t.Spec.Pool}
	}
	return t.Spec.Pools
}

func (t *Tenant) setPools(pools []string) {
	t.Spec.Pool, t.Spec.Pools = "", nil
	if len(pools) == 1 {
		t.Spec.Pool = pools[0]
	} else {
		t.Spec.Pools = pools
	}
}

// EnsureTenant returns the tenant of a namespace, and creates it if there is none.
func (d *Draft) EnsureTenant(namespace string, from *source.Object) (string, *Tenant) {
	name := d.FindTenant(namespace)
	if name == "" {
		name = ToName(namespace)
	}
	return name, d.AddTenant(name, from)
}

// FindPools returns the pools with nodes for pods that have all of these selections. It returns
// none if no selection chooses among pools.
func (d *Draft) FindPools(selections []Selection) []string {
	if !slices.ContainsFunc(selections, Selection.ChoosesPools) {
		return nil
	}
	var pools []string
	for _, n := range d.ListNodes() {
		if !slices.ContainsFunc(selections, func(s Selection) bool {
			fit := n.MatchSelection(s)
			return fit == NoNode || fit == SomeNodes && s.ChoosesPools()
		}) {
			pools = append(pools, n.Pool)
		}
	}
	if len(pools) > 0 {
		return Distinct(pools)
	}
	// These are pools of a values file, and pools that are not in the input.
	for _, s := range selections {
		if s.ChoosesPools() && (s.Key == d.Key || IsPoolLabel(s.Key)) {
			for _, value := range s.Values {
				pools = append(pools, d.FindPool(value))
			}
			return Distinct(pools)
		}
	}
	return nil
}

// FindPool returns the pool whose nodes have a value of the key.
func (d *Draft) FindPool(value string) string {
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
	return ToName(value)
}
