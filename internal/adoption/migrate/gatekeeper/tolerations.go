package gatekeeper

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"croft.dev/croft/internal/adoption/migrate/draft"
	"croft.dev/croft/internal/adoption/migrate/source"
)

// readTolerations accounts for the tolerations of a mutator.
func readTolerations(d *draft.Draft, m placingMutator) {
	source.AccountMetadata(m.Object, "tenants")
	m.At("spec").MarkKept("tenants")
	for _, namespace := range m.namespaces {
		name := d.FindTenant(namespace)
		tenant := d.Tenants[name]
		if tenant == nil || len(tenant.Pools()) == 0 {
			continue // placeByTolerations
		}
		for _, t := range m.tolerations {
			key, value := t.At("key").Text(), t.At("value").Text()
			pool := d.FindPool(value)
			if key == d.Key && value != "" && !slices.Contains(tenant.Pools(), pool) {
				t.MarkNotKept("tolerates pool %s, but the pods of %s run on pool %s: croft lets them run only there", pool, namespace, strings.Join(tenant.Pools(), " or "))
				d.ReportProblem(t, "pods of namespace %s tolerate pool %s, but run on pool %s%s: make the two agree", namespace, pool, strings.Join(tenant.Pools(), " or "), describePlacement(tenant))
				continue
			}
			t.MarkKeptAs(draft.TenantField(name, "pool"), "croft adds the toleration of the pool, whose nodes have no other taint")
		}
	}
}

func describePlacement(t *draft.Tenant) string {
	placer := t.Placed.Object()
	if placer == nil {
		return ""
	}
	return fmt.Sprintf(", by %s at %s", placer.ID(), placer.Place())
}

// placeByTolerations places namespaces whose pods tolerate the taints of one pool and do not
// select nodes.
func placeByTolerations(d *draft.Draft, mutators []placingMutator) {
	var order []string
	byTenant := map[string][]source.Field{}
	from := map[string]placingMutator{}
	for _, m := range mutators {
		for _, namespace := range m.namespaces {
			if t := d.Tenants[d.FindTenant(namespace)]; t != nil && len(t.Pools()) > 0 {
				continue
			}
			if len(byTenant[namespace]) == 0 {
				order = append(order, namespace)
				from[namespace] = m
			}
			byTenant[namespace] = append(byTenant[namespace], m.tolerations...)
		}
	}
	for _, namespace := range order {
		placeByToleration(d, namespace, from[namespace], byTenant[namespace])
	}
}

func placeByToleration(d *draft.Draft, namespace string, m placingMutator, fields []source.Field) {
	var tolerations []corev1.Toleration
	for _, f := range fields {
		tolerations = append(tolerations, parseToleration(f))
	}
	pools := findToleratedPools(d, tolerations)
	if len(pools) != 1 {
		for _, f := range fields {
			f.MarkNotKept("under croft, pods tolerate only the taint of their pool")
		}
		problem := "no pool of the input has taints that they tolerate"
		if len(pools) > 1 {
			problem = "they tolerate the taints of pools " + strings.Join(pools, ", ")
		}
		d.ReportProblem(m.getPlacingField(), "the pool of the pods of namespace %s is unknown: %s; add a mutator that sets spec.nodeSelector, or write %s",
			namespace, problem, draft.TenantField(draft.ToName(namespace), "pool"))
		return
	}
	name, t := d.EnsureTenant(namespace, m.Object)
	for _, f := range fields {
		f.MarkChanged(draft.TenantField(name, "pool"), "pods only tolerated the pool's taint, and could also run on other nodes: croft also selects the pool")
	}
	d.Place(t, name, m.getPlacingField(), pools...)
}

// findToleratedPools returns the dedicated pools that pods with these tolerations may run on. If
// the input has none, it returns the pools that tolerations of the key name.
func findToleratedPools(d *draft.Draft, tolerations []corev1.Toleration) []string {
	var pools []string
	for _, n := range d.ListNodes() {
		if n.IsDedicated() && n.IsToleratedBy(tolerations) {
			pools = append(pools, n.Pool)
		}
	}
	if len(pools) == 0 {
		for _, t := range tolerations {
			if t.Key == d.Key && t.Value != "" {
				pools = append(pools, d.FindPool(t.Value))
			}
		}
	}
	return draft.Distinct(pools)
}
