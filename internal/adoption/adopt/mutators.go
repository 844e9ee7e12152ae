package adopt

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/rules/gatekeeper"
)

// mutations is the group of Gatekeeper's mutators.
const mutations = "mutations.gatekeeper.sh"

// matchesTenant reports whether Gatekeeper applies a mutator or a constraint to a namespace of the
// tenant.
func (a *Adoption) matchesTenant(o *unstructured.Unstructured, live map[string]*corev1.Namespace) bool {
	return slices.ContainsFunc(a.tenant.Namespaces, func(name string) bool {
		included, restricted := readTexts(o, "namespaces")
		excluded, _ := readTexts(o, "excludedNamespaces")
		if restricted && !matchesAny(included, name) || matchesAny(excluded, name) || getString(o, "spec", "match", "scope") == "Cluster" {
			return false
		}
		content, ok, err := unstructured.NestedMap(o.Object, "spec", "match", "namespaceSelector")
		if err != nil || !ok {
			return true
		}
		var selector metav1.LabelSelector
		if runtime.DefaultUnstructuredConverter.FromUnstructured(content, &selector) != nil {
			return true
		}
		chosen, err := metav1.LabelSelectorAsSelector(&selector)
		namespace, there := live[name]
		return err != nil || there && chosen.Matches(labels.Set(namespace.Labels))
	})
}

func readTexts(o *unstructured.Unstructured, field string) ([]string, bool) {
	list, ok, err := unstructured.NestedStringSlice(o.Object, "spec", "match", field)
	return list, ok && err == nil && len(list) > 0
}

func matchesAny(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool { return gatekeeper.MatchesGlob(pattern, name) })
}

// compareRule reports whether croft replaces a mutator or a constraint. One that also selects
// other namespaces remains, since they still need it.
func (a *Adoption) compareRule(o *unstructured.Unstructured) (bool, string) {
	location := getString(o, "spec", "location")
	if o.GroupVersionKind().Group != mutations {
		return false, "a constraint of Gatekeeper: stays in force in addition to croft's rules"
	}
	if !isPlacement(location) {
		return false, "changes " + location + ", which croft does not change"
	}
	names, ok := readTexts(o, "namespaces")
	if !ok {
		return false, "places pods of namespaces that it does not name: " + location
	}
	for _, name := range names {
		if !slices.Contains(a.tenant.Namespaces, name) {
			return false, fmt.Sprintf("also places pods of %s", name)
		}
	}
	return true, "croft places these pods: " + location
}

func isPlacement(location string) bool {
	return strings.HasPrefix(location, "spec.nodeSelector") || strings.HasPrefix(location, "spec.tolerations")
}

// explainConflict returns why a mutator conflicts with croft's if Gatekeeper is also croft's engine:
// one sets a list as a whole and the other adds to it, so that Gatekeeper refuses every pod.
func (a *Adoption) explainConflict(o *unstructured.Unstructured) string {
	if a.estate.Platform.Placement != v1alpha1.PlacementGatekeeper || o.GetKind() != "Assign" || getString(o, "spec", "location") != "spec.tolerations" {
		return ""
	}
	values, _, err := unstructured.NestedSlice(o.Object, "spec", "parameters", "assign", "value")
	if err != nil {
		return ""
	}
	for _, pool := range a.tenant.Pools {
		if !slices.ContainsFunc(values, func(v any) bool {
			t, ok := v.(map[string]any)
			return ok && len(t) == 3 && t["key"] == a.estate.Platform.NodePoolKey && t["operator"] == "Equal" && t["value"] == pool
		}) {
			return fmt.Sprintf("Assign %s writes spec.tolerations without {key: %s, operator: Equal, value: %s}, which croft's mutators add: Gatekeeper would refuse every pod while both exist; add the toleration to the Assign first",
				o.GetName(), a.estate.Platform.NodePoolKey, pool)
		}
	}
	return ""
}
