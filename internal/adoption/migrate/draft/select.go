package draft

import (
	"slices"

	"croft.dev/croft/internal/adoption/migrate/source"
)

// CheckSelection checks that the nodes of a tenant's pools have a label that its pods select, other
// than the key's label: croft's pods only select their pool.
func (d *Draft) CheckSelection(t *Tenant, name string, by source.Field, key, value string) {
	s := NewSelection(key, value, by)
	switch pool := d.FindUnmetPool(t, s); {
	case !slices.ContainsFunc(t.Pools(), func(pool string) bool { return d.Pools[pool] != nil }):
		by.MarkNotKept("croft selects nodes only by %s, and the input has no pool of this tenant", d.Key)
	case pool == "":
		by.MarkKeptAs(TenantField(name, "pool"), "all nodes of the tenant's pool have %s", s)
	default:
		d.ReportLost(by, "pods ran only on nodes with %s, which the nodes of pool %s may lack: write {key: %s, operator: In, values: [%s]} into %s, or select it in the pods",
			s, pool, key, value, PoolField(pool, "instances.requirements"))
	}
}

// FindUnmetPool returns a pool of the tenant with nodes that do not meet a selection, or "" if
// there is none. It ignores the pool's own label, which Place handles.
func (d *Draft) FindUnmetPool(t *Tenant, s Selection) string {
	if s.ChoosesPools() && (s.Key == d.Key || IsPoolLabel(s.Key)) {
		return ""
	}
	for _, pool := range t.Pools() {
		i := slices.IndexFunc(d.ListNodes(), func(n *Nodes) bool { return n.Pool == pool })
		if i < 0 || d.ListNodes()[i].MatchSelection(s) != EveryNode {
			return pool
		}
	}
	return ""
}
