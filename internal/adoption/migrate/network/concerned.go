package network

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"croft.dev/croft/internal/adoption/migrate/draft"
)

// most is the maximum number of namespaces that are tried for a policy that selects them by a
// label: enough to show which ones it selects.
const most = 20

// listConcerned returns the namespaces from which a policy may allow ingress: the namespaces that
// it names, and the namespaces of the input with the selected labels.
func listConcerned(d *draft.Draft, p Policy) []corev1.Namespace {
	all := map[string]corev1.Namespace{}
	for _, rule := range p.Spec.Ingress {
		for _, peer := range rule.From {
			if peer.NamespaceSelector == nil {
				continue
			}
			names := listMentioned(peer.NamespaceSelector)
			for _, name := range names {
				all[name] = corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
			}
			if len(names) == 0 {
				addLabelled(d, peer.NamespaceSelector, all)
			}
		}
	}
	return slices.Collect(maps.Values(all))
}

// addLabelled adds namespaces with the labels of a selector.
func addLabelled(d *draft.Draft, s *metav1.LabelSelector, all map[string]corev1.Namespace) {
	selector, err := metav1.LabelSelectorAsSelector(s)
	if err != nil || selector.Empty() {
		return // a policy that selects all needs no list
	}
	for _, o := range d.List("", "Namespace") {
		if marks, _ := d.FindLabels(o.Name); selector.Matches(marks) {
			all[o.Name] = corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: o.Name, Labels: marks}}
			if len(all) >= most {
				return
			}
		}
	}
}

// listMentioned returns the namespaces that a selector names by the label
// kubernetes.io/metadata.name.
func listMentioned(s *metav1.LabelSelector) []string {
	var names []string
	if name := s.MatchLabels[corev1.LabelMetadataName]; name != "" {
		names = append(names, name)
	}
	for _, e := range s.MatchExpressions {
		if e.Key == corev1.LabelMetadataName && e.Operator == metav1.LabelSelectorOpIn {
			names = append(names, e.Values...)
		}
	}
	return names
}
