package gatekeeper

import (
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

func checkNamespaceSelector(w webhook, in Installation) (field, message string) {
	if w.namespaces == nil {
		return "", ""
	}
	selector, err := metav1.LabelSelectorAsSelector(w.namespaces)
	if err != nil {
		return "namespaceSelector", fmt.Sprintf("cannot be read (%v), so croft cannot determine which pods and objects %s; correct it", err, w.describeEffect())
	}
	requirements, _ := selector.Requirements()
	var exempt, by, labelled []string
	for _, namespace := range in.Namespaces {
		for _, requirement := range requirements {
			if requirement.Matches(buildLabels(namespace)) {
				continue
			}
			exempt, by = append(exempt, namespace.Name), append(by, requirement.String())
			if requirement.Key() == IgnoreLabel {
				labelled = append(labelled, namespace.Name)
			}
		}
	}
	if len(exempt) == 0 {
		return "", ""
	}
	// Both remedies may be necessary.
	advice := ""
	if len(labelled) > 0 {
		advice += fmt.Sprintf("; remove the label: kubectl label namespace %s %s-", labelled[0], IgnoreLabel)
	}
	if len(labelled) < len(exempt) {
		advice += "; remove the requirement that exempts them from the selector " + w.formatChartJSON("ExemptNamespacesLabels", "{}")
	}
	return "namespaceSelector", fmt.Sprintf("leaves out the tenants' namespaces %s, by %s: an object in them %s%s", joinNames(exempt), joinNames(by), w.describeNamespaceEffect(), advice)
}

// buildLabels returns the labels with the one that the API server adds to every namespace.
func buildLabels(n Namespace) labels.Set {
	set := labels.Set{}
	maps.Copy(set, n.Labels)
	set[corev1.LabelMetadataName] = n.Name
	return set
}
