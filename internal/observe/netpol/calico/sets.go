package calico

import (
	"net/netip"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Sets are NetworkSets and GlobalNetworkSets: addresses that selectors match by labels, like
// pods.
type Sets struct{ all []set }

type set struct {
	// namespace is empty for a cluster-wide set.
	namespace               string
	labels, namespaceLabels map[string]string
	nets                    []netip.Prefix
}

// Add adds a set. namespaceLabels are the labels of its namespace, if it has one. Entries
// that are not networks are ignored, as in Calico.
func (s *Sets) Add(o *unstructured.Unstructured, namespaceLabels map[string]string) {
	texts, _, _ := unstructured.NestedStringSlice(o.Object, "spec", "nets")
	add := set{namespace: o.GetNamespace(), labels: o.GetLabels(), namespaceLabels: namespaceLabels}
	for _, text := range texts {
		if read, err := parsePrefixes([]string{text}); err == nil {
			add.nets = append(add.nets, read...)
		}
	}
	s.all = append(s.all, add)
}

// matchesAddress reports whether an address is in a set that a rule's selectors match.
func (s *Sets) matchesAddress(endpoint *side, address netip.Addr) bool {
	if s == nil {
		// In a cluster-wide policy, NotSelector alone matches everything that it does not
		// select.
		return endpoint.isNegativeOnly()
	}
	return endpoint.isNegativeOnly() || slices.ContainsFunc(s.all, func(n set) bool {
		namespaces := map[string]string{}
		if n.namespace != "" {
			namespaces[nameLabel] = n.namespace
			namespaces[metav1NameLabel] = n.namespace
		}
		for key, value := range n.namespaceLabels {
			namespaces[key] = value
		}
		switch {
		case !containsAddress(n.nets, address),
			endpoint.NamespaceSelector != "" && !endpoint.namespaces.Matches(namespaces),
			endpoint.NamespaceSelector == "all()" && n.namespace == "",
			endpoint.NamespaceSelector == "" && endpoint.namespace != "" && n.namespace != endpoint.namespace,
			endpoint.Selector != "" && !endpoint.pods.Matches(n.labels),
			endpoint.NotSelector != "" && endpoint.excludedPods.Matches(n.labels):
			return false
		default:
			return true
		}
	})
}

// isNegativeOnly reports whether a side has only negative conditions.
func (s *side) isNegativeOnly() bool {
	return s.Selector == "" && s.NamespaceSelector == "" && len(s.ServiceAccounts) == 0 && s.namespace == ""
}
