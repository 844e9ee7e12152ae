package hnc

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"croft.dev/croft/internal/adoption/migrate/draft"
	"croft.dev/croft/internal/adoption/migrate/source"
)

const (
	// subnamespaceOf is the annotation with the parent of a namespace that a SubnamespaceAnchor created.
	subnamespaceOf = draft.HNCGroup + "/subnamespace-of"
	// depthSuffix is the end of the labels that name the ancestors of a namespace. Their value is the distance.
	depthSuffix = ".tree." + draft.HNCGroup + "/depth"
)

// forest is the hierarchy of namespaces.
type forest struct {
	parents map[string]string
	// hasChildren are the namespaces that are a parent.
	hasChildren map[string]bool
	// origins are the objects that name the parents, by child.
	origins map[string]*source.Object
}

func newForest(d *draft.Draft) *forest {
	f := &forest{map[string]string{}, map[string]bool{}, map[string]*source.Object{}}
	for _, o := range d.List(draft.HNCGroup, "HierarchyConfiguration") {
		f.setParent(o.Namespace, o.At("spec", "parent").Text(), o)
	}
	for _, o := range d.List(draft.HNCGroup, "SubnamespaceAnchor") {
		f.setParent(o.Name, o.Namespace, o)
	}
	for _, o := range d.List("", "Namespace") {
		f.setParent(o.Name, o.At("metadata", "annotations", subnamespaceOf).Text(), o)
		for _, label := range o.At("metadata", "labels").Fields() {
			if ancestor, ok := strings.CutSuffix(label.Key(), depthSuffix); ok && label.Text() == "1" {
				f.setParent(o.Name, ancestor, o)
			}
		}
	}
	return f
}

// setParent sets the parent of a namespace, unless it has one or the hierarchy would get a cycle.
func (f *forest) setParent(child, parent string, origin *source.Object) {
	if child != "" && parent != "" && f.parents[child] == "" && !f.isWithin(parent, child) {
		f.parents[child], f.origins[child] = parent, origin
		f.hasChildren[parent] = true
	}
}

// isWithin reports whether a namespace is in the subtree of another. A subtree includes its root.
func (f *forest) isWithin(namespace, root string) bool {
	for ; namespace != ""; namespace = f.parents[namespace] {
		if namespace == root {
			return true
		}
	}
	return false
}

// listDescendants returns the namespaces below another, the nearest first.
func (f *forest) listDescendants(root string) []string {
	var all []string
	for child := range f.parents {
		if child != root && f.isWithin(child, root) {
			all = append(all, child)
		}
	}
	slices.SortFunc(all, func(a, b string) int { return cmp.Or(cmp.Compare(f.getDepth(a), f.getDepth(b)), cmp.Compare(a, b)) })
	return all
}

func (f *forest) getDepth(namespace string) int {
	depth := 0
	for ; namespace != ""; namespace = f.parents[namespace] {
		depth++
	}
	return depth
}

// listRoots returns the namespaces with descendants and without a parent.
func (f *forest) listRoots() []string {
	roots := map[string]bool{}
	for _, parent := range f.parents {
		if f.parents[parent] == "" {
			roots[parent] = true
		}
	}
	return slices.Sorted(maps.Keys(roots))
}

// listTenants returns the tenants with namespaces in a list.
func listTenants(d *draft.Draft, namespaces []string) []string {
	var all []string
	for _, namespace := range namespaces {
		if name := d.FindTenant(namespace); name != "" {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}
