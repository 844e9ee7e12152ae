package gatekeeper

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"croft.dev/croft/internal/adoption/migrate/draft"
	"croft.dev/croft/internal/adoption/migrate/source"
)

// readSelector places the namespaces of a mutator that selects nodes.
func readSelector(d *draft.Draft, m placingMutator) {
	source.AccountMetadata(m.Object, "tenants")
	for _, namespace := range m.namespaces {
		var pools []string
		chooses := false
		for _, term := range m.terms {
			term = resolveNamespace(term, namespace)
			found := d.FindPools(term)
			pools = append(pools, found...)
			if choosesPools(term) {
				chooses = true
				if len(found) == 0 {
					d.ReportProblem(term[0].At, "the input has no NodePool with nodes for %s, which pods of namespace %s need: add its file", describeTerm(term), namespace)
				}
			}
		}
		switch {
		case len(pools) > 0:
			name, t := d.EnsureTenant(namespace, m.Object)
			d.Place(t, name, m.getPlacingField(), draft.Distinct(pools)...)
		case !chooses && !isEverywhere(d, m.terms):
			d.EnsureTenant(namespace, m.Object) // reported as a tenant without a pool, if it gets none
		}
	}
	m.At("spec").MarkKept("tenants")
}

// isEverywhere reports whether the nodes of every pool meet the selections.
func isEverywhere(d *draft.Draft, terms [][]draft.Selection) bool {
	return !slices.ContainsFunc(slices.Concat(terms...), func(s draft.Selection) bool {
		return s.Key != corev1.LabelOSStable && len(d.ListNodes()) == 0 ||
			slices.ContainsFunc(d.ListNodes(), func(n *draft.Nodes) bool { return n.MatchSelection(s) != draft.EveryNode })
	})
}

// getPlacingField returns the field that decides where pods run.
func (m placingMutator) getPlacingField() source.Field {
	if m.Kind == "Assign" {
		if value := m.value(); value.Found() {
			return value
		}
		return m.At("spec", "parameters", "assign")
	}
	return m.At("spec", "parameters", "values")
}

func describeTerm(term []draft.Selection) string {
	all := make([]string, len(term))
	for i, s := range term {
		all[i] = s.String()
	}
	return strings.Join(all, " and ")
}

// keepSelections compares the labels that a mutator selects with the nodes of the tenants'
// pools: croft selects the pool, and no other labels of its nodes.
func keepSelections(d *draft.Draft, m placingMutator) {
	for _, namespace := range m.namespaces {
		name := d.FindTenant(namespace)
		t := d.Tenants[name]
		if t == nil || len(t.Pools()) == 0 {
			continue // reported as a tenant without a pool
		}
		for _, term := range m.terms {
			for _, s := range resolveNamespace(term, namespace) {
				pool := d.FindUnmetPool(t, s)
				if pool == "" {
					s.At.MarkKept(draft.TenantField(name, "pool"))
					continue
				}
				s.At.MarkNotKept("croft selects only the pool, and not every node of pool %s has %s", pool, s)
				d.ReportProblem(s.At, "pods of namespace %s need nodes with %s, which not every node of pool %s has: write it into %s, or select it in the pods",
					namespace, s, pool, draft.PoolField(pool, "instances.requirements"))
			}
		}
	}
}
