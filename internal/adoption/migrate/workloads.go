package migrate

import (
	"slices"
	"strings"

	"croft.dev/croft/internal/adoption/migrate/draft"
	"croft.dev/croft/internal/adoption/migrate/source"
	"croft.dev/croft/internal/declare/document"
)

// findMisplacedWorkloads returns problems of workloads that select a pool of another tenant: croft
// refuses their pods, and the pool's taint evicts pods outside of tenants.
func findMisplacedWorkloads(d *draft.Draft, r *Result) document.Problems {
	var all document.Problems
	for _, o := range d.Objects {
		if o.Skip || draft.IsRead(o) || o.Namespace == "" {
			continue
		}
		specs := []source.Field{findPodSpec(o)}
		if !specs[0].Found() && d.FindTenant(o.Namespace) != "" {
			specs = findPlacingFields(o.Root())
		}
		for _, spec := range specs {
			for _, term := range listSelections(spec) {
				if reason := explainMisplacement(d, r, o.Namespace, term); reason != "" {
					all = append(all, term[0].At.Problem("%s", reason))
				}
			}
		}
	}
	return all
}

// findPlacingFields returns the fields of an add-on's object from which its controller takes the
// placement of pods, such as spec.affinity of CloudNativePG's Cluster.
func findPlacingFields(f source.Field) []source.Field {
	var all []source.Field
	if f.At("nodeSelector").Found() || f.At("affinity", "nodeAffinity").Found() {
		all = append(all, f)
	}
	for _, below := range slices.Concat(f.Fields(), f.Items()) {
		all = append(all, findPlacingFields(below)...)
	}
	return all
}

// findPodSpec returns the spec of a workload's pods. It is unset for other objects.
func findPodSpec(o *source.Object) source.Field {
	for _, path := range [][]string{{"spec", "jobTemplate", "spec", "template", "spec"}, {"spec", "template", "spec"}, {"template", "spec"}, {"spec"}} {
		if f := o.At(path...); f.At("containers").Found() {
			return f
		}
	}
	return source.Field{}
}

// listSelections returns the alternative node selections of pods, from nodeSelector and required
// affinity.
func listSelections(spec source.Field) [][]draft.Selection {
	always := draft.ListSelections(spec.At("nodeSelector").TextMap(), spec.At("nodeSelector"))
	var terms [][]draft.Selection
	for _, t := range spec.At("affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms").Items() {
		term := slices.Clone(always)
		for _, e := range t.At("matchExpressions").Items() {
			if s, ok := draft.ParseSelection(e); ok {
				term = append(term, s)
			}
		}
		if len(term) > 0 {
			terms = append(terms, term)
		}
	}
	if len(terms) == 0 && len(always) > 0 {
		terms = append(terms, always)
	}
	return terms
}

// explainMisplacement returns why pods of a namespace can no longer run on the nodes that they
// select, or "" if they can, or run outside of croft.
func explainMisplacement(d *draft.Draft, r *Result, namespace string, term []draft.Selection) string {
	pools := slices.DeleteFunc(d.FindPools(term), func(pool string) bool {
		_, ok := r.File.Pools[pool]
		return !ok
	})
	if len(pools) == 0 {
		return ""
	}
	names := strings.Join(pools, " or ")
	t := d.Tenants[d.FindTenant(namespace)]
	if t == nil {
		return "requires nodes of pool " + names + ", which takes only pods of its tenants, and no tenant in the input has namespace " + namespace + ": its pods will be evicted"
	}
	own := slices.DeleteFunc(pools, func(pool string) bool { return !slices.Contains(t.Pools(), pool) })
	if len(own) == 0 {
		return "requires nodes of pool " + names + ", but the tenant of namespace " + namespace + " runs on pool " + strings.Join(t.Pools(), " or ") + ": croft refuses its pods"
	}
	for _, s := range term {
		if (s.Key == d.Key || draft.IsPoolLabel(s.Key)) && s.ChoosesPools() && !slices.ContainsFunc(own, func(pool string) bool { return slices.Contains(s.Values, pool) }) {
			return "requires nodes with " + s.String() + ", which have " + s.Key + "=" + own[0] + " under croft: write that, or omit it"
		}
	}
	return ""
}
