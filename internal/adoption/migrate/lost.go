package migrate

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"

	"croft.dev/croft/internal/adoption/migrate/draft"
	"croft.dev/croft/internal/adoption/migrate/gatekeeper"
	"croft.dev/croft/internal/adoption/migrate/kubernetes"
	"croft.dev/croft/internal/adoption/migrate/source"
	"croft.dev/croft/internal/declare/document"
)

// findLostPlacements returns a problem for each object that places pods, or reserves nodes for some
// pods, without a counterpart in croft.yaml. The readers report such objects with the reason;
// this function finds the objects that they missed.
func findLostPlacements(d *draft.Draft, r *Result) document.Problems {
	var all document.Problems
	lose := func(o *source.Object, loss string) {
		if !hasObjectProblem(r.Problems, o) {
			all = append(all, o.Problem(nil, "%s, and croft.yaml has no equivalent: write it into croft.yaml yourself", loss))
		}
	}
	for o, namespaces := range findPlacingObjects(d) {
		if !hasTenants(d, r, namespaces) {
			lose(o, "places the pods of "+strings.Join(namespaces, ", "))
		}
	}
	for _, n := range d.ListNodes() {
		_, ok := r.File.Pools[n.Pool]
		if !ok && n.IsDedicated() && !hasFieldProblem(r.Problems, "pools."+n.Pool) {
			lose(n.From, "keeps its nodes for pods that tolerate their taints")
		}
	}
	slices.SortFunc(all, func(a, b document.Problem) int { return strings.Compare(a.Path, b.Path) })
	return all
}

// findPlacingObjects returns the objects that decide where the pods of namespaces run, with the
// namespaces.
func findPlacingObjects(d *draft.Draft) map[*source.Object][]string {
	all := map[*source.Object][]string{}
	maps.Copy(all, gatekeeper.FindPlacing(d))
	for _, o := range d.List("", "Namespace") {
		openShifts, _ := labels.ConvertSelectorToLabelsMap(o.At("metadata", "annotations", "openshift.io/node-selector").Text())
		if (choosesPool(kubernetes.ParseNodeSelector(o)) || choosesPool(openShifts)) && !strings.HasPrefix(o.Name, "kube-") {
			all[o] = []string{o.Name}
		}
	}
	for _, o := range d.List(draft.CapsuleGroup, "Tenant") {
		if choosesPool(o.At("spec", "nodeSelector").TextMap()) {
			all[o] = d.Namespaces(draft.ToName(o.Name))
		}
	}
	return all
}

// choosesPool reports whether a nodeSelector distinguishes pools.
func choosesPool(nodeSelector map[string]string) bool {
	return slices.ContainsFunc(draft.ListSelections(nodeSelector, source.Field{}), draft.Selection.ChoosesPools)
}

// hasTenants reports whether each namespace belongs to a tenant that is in croft.yaml or that a
// problem names.
func hasTenants(d *draft.Draft, r *Result, namespaces []string) bool {
	return len(namespaces) > 0 && !slices.ContainsFunc(namespaces, func(namespace string) bool {
		name := d.FindTenant(namespace)
		_, ok := r.File.Tenants[name]
		return !ok && (name == "" || !d.Reported[name] && !hasFieldProblem(r.Problems, "tenants."+name))
	})
}

// hasObjectProblem reports whether a problem concerns an object.
func hasObjectProblem(problems document.Problems, o *source.Object) bool {
	return slices.ContainsFunc(problems, func(p document.Problem) bool {
		return p.File == o.File && (p.Path == o.ID() || strings.HasPrefix(p.Path, o.ID()+": "))
	})
}

// hasFieldProblem reports whether a problem concerns a field of croft.yaml, or a field below it.
func hasFieldProblem(problems document.Problems, field string) bool {
	field = "croft.yaml: " + field
	return slices.ContainsFunc(problems, func(p document.Problem) bool { return p.Path == field || strings.HasPrefix(p.Path, field+".") })
}
