package gatekeeper

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"croft.dev/croft/internal/adoption/migrate/draft"
	"croft.dev/croft/internal/adoption/migrate/source"
	"croft.dev/croft/internal/rules/gatekeeper"
)

// scope is the set of namespaces and objects to which a mutator or a constraint applies.
type scope struct {
	namespaces []string
	// unknown is the field that migrate cannot evaluate, and why the reason. Both are empty if
	// it can.
	unknown source.Field
	why     string
	// nothing is the reason why it applies to no pod, or "" if it applies to some.
	nothing string
}

// findScope returns the namespaces to which a mutator or a constraint applies as a whole.
func findScope(d *draft.Draft, m Mutator) scope {
	match := m.At("spec", "match")
	switch {
	case match.At("scope").Text() == "Cluster":
		return scope{nothing: "scope: Cluster matches no pod, since pods are in namespaces"}
	case match.At("source").Text() == "Generated":
		return scope{nothing: "source: Generated matches only objects that Gatekeeper generates for its own checks, and no pod"}
	}
	if f, reason := findCondition(m); reason != "" {
		return scope{unknown: f, why: reason}
	}
	return findNamespaces(d, match)
}

// findCondition returns a field that limits a mutator or a constraint to some of the objects in
// a namespace, and why it cannot be converted.
func findCondition(m Mutator) (source.Field, string) {
	match, parameters := m.At("spec", "match"), m.At("spec", "parameters")
	for _, f := range match.Fields() {
		switch f.Key() {
		case "namespaces", "excludedNamespaces", "namespaceSelector", "scope", "source", "kinds":
		case "labelSelector", "name":
			if f.Text() != "" || len(f.At("matchLabels").Fields())+len(f.At("matchExpressions").Items()) > 0 {
				return f, "applies to some objects of its namespaces only, and croft's rules apply to every pod of a tenant"
			}
		default:
			return f, "is a condition that croft migrate does not know"
		}
	}
	if m.Group() != draft.MutationsGroup {
		return source.Field{}, ""
	}
	for _, key := range []string{"pathTests", "assignIf"} {
		if f := parameters.At(key); len(f.Items())+len(f.Fields()) > 0 {
			return f, "changes only pods that fulfil a condition, and croft places every pod of a tenant"
		}
	}
	for _, a := range m.At("spec", "applyTo").Items() {
		if operations := a.At("operations"); operations.Found() && !slices.Contains(operations.Texts(), "CREATE") && !slices.Contains(operations.Texts(), "*") {
			return operations, "does not change pods when they are created, which is when croft places them"
		}
	}
	if kinds := match.At("kinds"); kinds.Found() && !matchesKinds(m.Object, append(m.listKinds(), "*")...) {
		return kinds, "has other kinds than applyTo, so that it changes nothing"
	}
	return source.Field{}, ""
}

// findNamespaces returns the namespaces that a match selects.
func findNamespaces(d *draft.Draft, match source.Field) scope {
	named := match.At("namespaces")
	names, unknown := expandPatterns(d, named)
	if unknown != "" {
		return scope{unknown: named, why: "no namespace " + unknown + " is in the input: add the Namespace objects, or write the full names"}
	}
	selector, err := parseSelector(match.At("namespaceSelector"))
	if err != nil {
		return scope{unknown: match.At("namespaceSelector"), why: "cannot be read: " + err.Error()}
	}
	if len(named.Items()) == 0 {
		names = append(listNames(selector), readNames(d)...)
	}
	var all []string
	for _, name := range draft.Distinct(names) {
		marks, read := readLabels(d, name)
		switch {
		case matchesAny(match.At("excludedNamespaces").Texts(), name) || marks.Has(gatekeeper.IgnoreLabel):
			continue
		case !read && !selectsByName(selector):
			return scope{unknown: match.At("namespaceSelector"), why: fmt.Sprintf("selects by labels, and the input lacks Namespace %s: add it", name)}
		case selector.Matches(marks):
			all = append(all, name)
		}
	}
	if len(all) == 0 {
		return scope{unknown: match, why: "selects no namespace of the input: add the Namespace objects"}
	}
	return scope{namespaces: all}
}

// expandPatterns returns the namespaces for a list of names and patterns, and a pattern that
// matches none of the namespaces in the input.
func expandPatterns(d *draft.Draft, patterns source.Field) (names []string, unknown string) {
	for _, pattern := range patterns.Texts() {
		if !strings.Contains(pattern, "*") {
			names = append(names, pattern)
			continue
		}
		before := len(names)
		for _, name := range readNames(d) {
			if gatekeeper.MatchesGlob(pattern, name) {
				names = append(names, name)
			}
		}
		if len(names) == before {
			return nil, pattern
		}
	}
	return names, ""
}

func matchesAny(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool { return gatekeeper.MatchesGlob(pattern, name) })
}

// readNames returns the names of the namespaces in the input.
func readNames(d *draft.Draft) []string {
	var names []string
	for _, o := range d.List("", "Namespace") {
		names = append(names, o.Name)
	}
	return names
}

// readLabels returns the labels of a namespace, and whether the input has its object.
func readLabels(d *draft.Draft, name string) (labels.Set, bool) {
	marks := labels.Set{corev1.LabelMetadataName: name}
	o := d.Find("", "Namespace", name)
	if o == nil {
		return marks, false
	}
	maps.Copy(marks, o.At("metadata", "labels").TextMap())
	return marks, true
}

func parseSelector(f source.Field) (labels.Selector, error) {
	var s metav1.LabelSelector
	if !f.Found() {
		return labels.Everything(), nil
	}
	if err := f.Decode(&s); err != nil {
		return nil, err
	}
	return metav1.LabelSelectorAsSelector(&s)
}

// listNames returns the namespaces that a selector names by the label
// kubernetes.io/metadata.name.
func listNames(selector labels.Selector) []string {
	var names []string
	requirements, _ := selector.Requirements()
	for _, r := range requirements {
		if r.Key() == corev1.LabelMetadataName {
			if slices.Contains([]selection.Operator{selection.In, selection.Equals, selection.DoubleEquals}, r.Operator()) {
				names = append(names, r.Values().List()...)
			}
		}
	}
	return names
}

func selectsByName(selector labels.Selector) bool {
	requirements, _ := selector.Requirements()
	return !slices.ContainsFunc(requirements, func(r labels.Requirement) bool { return r.Key() != corev1.LabelMetadataName })
}
