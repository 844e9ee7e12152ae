package gatekeeper

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"croft.dev/croft/internal/migrate/draft"
	"croft.dev/croft/internal/migrate/source"
)

// readTolerations accounts for the tolerations of a mutator.
func readTolerations(d *draft.Draft, m placed) {
	source.Frame(m.Object, "tenants")
	m.At("spec").Kept("tenants")
	for _, namespace := range m.namespaces {
		name := d.TenantOf(namespace)
		tenant := d.Tenants[name]
		if tenant == nil || len(tenant.Pools()) == 0 {
			continue // placeByTolerations
		}
		for _, t := range m.tolerations {
			key, value := t.At("key").Text(), t.At("value").Text()
			pool := d.PoolNamed(value)
			if key == d.Key && value != "" && !slices.Contains(tenant.Pools(), pool) {
				t.NotKept("tolerates pool %s, and the pods of %s run on pool %s: croft lets them run there alone", pool, namespace, strings.Join(tenant.Pools(), " or "))
				d.Problem(t, "pods of namespace %s tolerate pool %s, but run on pool %s%s: make the two agree", namespace, pool, strings.Join(tenant.Pools(), " or "), placedBy(tenant))
				continue
			}
			t.KeptAs(draft.TenantField(name, "pool"), "croft adds the toleration of the pool itself, whose nodes have no other taint")
		}
	}
}

func placedBy(t *draft.Tenant) string {
	by := t.Placed.Object()
	if by == nil {
		return ""
	}
	return fmt.Sprintf(", by %s at %s", by.ID(), by.Place())
}

// placeByTolerations places namespaces whose pods tolerate the taints of one pool and do not
// select nodes.
func placeByTolerations(d *draft.Draft, mutators []placed) {
	var order []string
	by := map[string][]source.Field{}
	from := map[string]placed{}
	for _, m := range mutators {
		for _, namespace := range m.namespaces {
			if t := d.Tenants[d.TenantOf(namespace)]; t != nil && len(t.Pools()) > 0 {
				continue
			}
			if len(by[namespace]) == 0 {
				order = append(order, namespace)
				from[namespace] = m
			}
			by[namespace] = append(by[namespace], m.tolerations...)
		}
	}
	for _, namespace := range order {
		placeByToleration(d, namespace, from[namespace], by[namespace])
	}
}

func placeByToleration(d *draft.Draft, namespace string, m placed, fields []source.Field) {
	var tolerations []corev1.Toleration
	for _, f := range fields {
		tolerations = append(tolerations, toleration(f))
	}
	pools := toleratedPools(d, tolerations)
	if len(pools) != 1 {
		for _, f := range fields {
			f.NotKept("croft's pods tolerate the taint of their pool alone")
		}
		what := "no pool that was read has taints that they tolerate"
		if len(pools) > 1 {
			what = "they tolerate the taints of pools " + strings.Join(pools, ", ")
		}
		d.Problem(m.at(), "it is not known which pool the pods of namespace %s run on: %s; add a mutator that sets spec.nodeSelector, or write %s",
			namespace, what, draft.TenantField(draft.AsName(namespace), "pool"))
		return
	}
	name, t := d.TenantFor(namespace, m.Object)
	for _, f := range fields {
		f.Changed(draft.TenantField(name, "pool"), "pods only tolerated the pool's taint, and could run elsewhere too: croft also selects the pool")
	}
	d.Place(t, name, m.at(), pools...)
}

// toleratedPools returns the dedicated pools that pods with these tolerations may run on. If
// the input has none, it returns the pools that tolerations of the key name.
func toleratedPools(d *draft.Draft, tolerations []corev1.Toleration) []string {
	var pools []string
	for _, n := range d.Nodes() {
		if n.IsDedicated() && n.IsToleratedBy(tolerations) {
			pools = append(pools, n.Pool)
		}
	}
	if len(pools) == 0 {
		for _, t := range tolerations {
			if t.Key == d.Key && t.Value != "" {
				pools = append(pools, d.PoolNamed(t.Value))
			}
		}
	}
	return draft.Distinct(pools)
}
